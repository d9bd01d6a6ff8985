"""Counts the tests in the file that `swift test --xunit-output` writes.

usage: xunit.py NAME STATUS FILE  →  NAME passed failed skipped

STATUS is swift's exit code: a run that failed without a failed test (it did not
build, it crashed, it was too slow) counts as one failure.
"""

import sys
import xml.etree.ElementTree as tree


def count(path: str) -> tuple[int, int, int]:
    passed = failed = skipped = 0
    for case in tree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main() -> None:
    name, status, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    try:
        passed, failed, skipped = count(path)
    except (OSError, tree.ParseError):
        passed, failed, skipped = 0, 0, 0
    if failed == 0 and (status != 0 or passed == 0):
        failed = 1
    print(name, passed, failed, skipped)


if __name__ == "__main__":
    main()
