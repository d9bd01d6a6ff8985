"""Runs a folder of unittest files and appends its counts to a file.

usage: run.py NAME FOLDER [--counts FILE] [-k PATTERN] [--jobs N]

A skipped test counts as a failure when VENCEJO_CI is 1: there, nothing that a
test needs may be missing.
"""

import argparse
import faulthandler
import os
import shutil
import subprocess
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


def side_by_side(options) -> int:
    """Runs this again in several processes, prints one's output after the other's, and adds up."""
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for part in range(options.jobs):
            log, counts = (Path(folder) / f"{part}.{name}" for name in ("log", "counts"))
            with log.open("wb") as output:
                running.append((log, counts, subprocess.Popen(
                    [sys.executable, *sys.argv, "--part", str(part), "--counts", str(counts)],
                    stdout=output, stderr=subprocess.STDOUT)))
        total = [0, 0, 0]
        for log, counts, process in running:
            process.wait()
            print(log.read_text(errors="replace"), flush=True)
            # One that died before it could count itself is a failure.
            found = counts.read_text().split()[1:] if counts.exists() else (0, 1, 0)
            total = [one + int(other) for one, other in zip(total, found)]
    return conclude(options, *total)


def conclude(options, passed: int, failed: int, skipped: int) -> int:
    if options.counts:
        with open(options.counts, "a") as file:
            file.write(f"{options.name} {passed} {failed} {skipped}\n")
    return 1 if failed or passed == 0 else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("folder")
    parser.add_argument("--counts")
    parser.add_argument("-k", dest="patterns", action="append")
    parser.add_argument("--limit", type=float, default=400, help="seconds until it gives up")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once, each with files of its own")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jobs > 1 and options.part is None:
        return side_by_side(options)

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
    # The largest first, so that parts are about as long as one another.
    files = sorted(Path(options.folder).glob("test_*.py"), key=lambda file: (-file.stat().st_size, file.name))
    sys.path.insert(0, str(Path(options.folder).resolve()))
    suite = loader.loadTestsFromNames([file.stem for file in files[options.part or 0::options.jobs]])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)

    shutil.rmtree(home, ignore_errors=True)
    if "stubs" in sys.modules:
        shutil.rmtree(sys.modules["stubs"].folder, ignore_errors=True)

    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = result.passed
    if os.environ.get("VENCEJO_CI") == "1":
        failed, skipped = failed + skipped, 0
    return conclude(options, passed, failed, skipped)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # grpcio's threads may linger; nothing is left to wait for.
    os._exit(code)
