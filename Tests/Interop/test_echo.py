"""interop.proto between Python, C++ and Swift.

The Python server is checked too: it holds the checks themselves to account.
VENCEJO_ECHO names the Swift side: `PROGRAM serve ADDRESS` serves, and
`PROGRAM check ADDRESS` drives its client against a server, prints one line per
check and exits 0 when all passed.
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import harness
from echo_checks import EchoChecks
import cpp

HERE = Path(__file__).resolve().parent


def swift_program() -> str:
    path = os.environ.get("VENCEJO_ECHO", "")
    if not Path(path).is_file():
        raise unittest.SkipTest("no Swift side of interop.proto (VENCEJO_ECHO)")
    return path


class PythonServer(EchoChecks, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.peer = harness.Peer([sys.executable, str(HERE / "echo_server.py")])
        cls.addClassCleanup(cls.peer.stop)
        cls.address = cls.peer.address

    def test_swift_client(self):
        drive_swift_client(self, self.address)

    def test_cpp_client(self):
        drive(self, [cpp.built("echo_client"), self.address])


class CppServer(EchoChecks, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.peer = harness.Peer([cpp.built("echo_server"), "127.0.0.1:0"])
        cls.addClassCleanup(cls.peer.stop)
        cls.address = cls.peer.address

    def test_swift_client(self):
        drive_swift_client(self, self.address)


class SwiftServer(EchoChecks, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.peer = harness.Peer([swift_program(), "serve", "127.0.0.1:0"])
        cls.addClassCleanup(cls.peer.stop)
        cls.address = cls.peer.address

    def test_swift_client(self):
        drive_swift_client(self, self.address)

    def test_cpp_client(self):
        drive(self, [cpp.built("echo_client"), self.address])


def drive_swift_client(test, address: str) -> None:
    drive(test, [swift_program(), "check", address])


def drive(test, command: list[str]) -> None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired as error:
        # The checks that passed say which one hangs.
        test.fail(f"{command} hangs; so far: {error.stdout} {error.stderr}")
    test.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
