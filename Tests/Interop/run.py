"""Runs a folder of unittest files and appends its counts to a file.

usage: run.py NAME FOLDER [--counts FILE] [-k PATTERN]

A skipped test counts as a failure when VENCEJO_CI is 1: there, nothing that a
test needs may be missing.
"""

import argparse
import faulthandler
import os
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A test run leaves no files behind in the source folders.
sys.dont_write_bytecode = True


class Result(unittest.TextTestResult):
    """Says how long each test took, so that a slow one is seen."""

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    passed = 0

    def addSuccess(self, test):
        self.passed += 1
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok ({time.monotonic() - self.began:.2f} s)")
        self.stream.flush()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("folder")
    parser.add_argument("--counts")
    parser.add_argument("-k", dest="patterns", action="append")
    parser.add_argument("--limit", type=float, default=400, help="seconds until it gives up")
    options = parser.parse_args()

    # What programs remember of their user goes to a folder that ends with the
    # run, and nothing of the user's own is read.
    home = tempfile.mkdtemp(prefix="vencejo-home-")
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]
    os.environ["HOME"] = home

    # A test that hangs must say where.
    faulthandler.dump_traceback_later(options.limit, exit=True)
    sys.path.insert(0, str(HERE))
    loader = unittest.TestLoader()
    if options.patterns:
        loader.testNamePatterns = [f"*{pattern}*" for pattern in options.patterns]
    suite = loader.discover(options.folder, pattern="test_*.py")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)

    shutil.rmtree(home, ignore_errors=True)
    if "stubs" in sys.modules:
        shutil.rmtree(sys.modules["stubs"].folder, ignore_errors=True)

    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = result.passed
    if os.environ.get("VENCEJO_CI") == "1":
        failed, skipped = failed + skipped, 0
    if options.counts:
        with open(options.counts, "a") as file:
            file.write(f"{options.name} {passed} {failed} {skipped}\n")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # grpcio's threads may linger; nothing is left to wait for.
    os._exit(code)
