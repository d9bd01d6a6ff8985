"""Scripts/start: what it runs, joins, names and leaves behind."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

import harness
from harness import LIMIT

START = harness.stubs.TOP / "Scripts/start"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Start(unittest.TestCase):
    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="vencejo-data-")
        self.addCleanup(shutil.rmtree, self.data, ignore_errors=True)
        self.address = f"127.0.0.1:{free_port()}"
        self.environment = {
            **os.environ, "VENCEJO_LISTEN": self.address, "VENCEJO_DATA": self.data,
            "VENCEJO_PROGRAM": harness.program()}

    def start(self, commands: str, **options):
        return subprocess.run([START], input=commands, capture_output=True, text=True,
                              timeout=60, env=self.environment, **options)

    def listens(self) -> bool:
        host, port = self.address.split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def test_runs_commands_and_stops_the_server(self):
        ended = self.start("help\n")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue(ended.stdout)
        self.assertEqual(ended.stderr, "")
        self.assertFalse(self.listens(), "the server was left behind")

    def test_a_failed_command_fails_the_run(self):
        ended = self.start("no-such-command\n")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("no-such-command", ended.stderr)
        self.assertFalse(self.listens())

    def test_joins_a_server_of_ours_and_leaves_it(self):
        server = harness.Server()
        self.addCleanup(server.close)
        self.environment["VENCEJO_LISTEN"] = server.address
        self.assertEqual(self.start("help\n").returncode, 0)
        self.assertTrue(server.peer.alive())
        with server.connect():
            pass

    def test_names_another_program_on_the_port(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", int(self.address.split(":")[1])))
            other.listen()
            ended = self.start("help\n")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn(f"(process {os.getpid()})", ended.stderr)
        self.assertIn("VENCEJO_LISTEN", ended.stderr, "no hint what to do")

    def test_says_why_the_server_did_not_start(self):
        path = Path(self.data) / "file"
        path.write_text("not a folder")
        self.environment["VENCEJO_DATA"] = str(path)
        ended = self.start("help\n")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn(str(path), ended.stderr)

    def test_terminated_it_takes_the_server_along(self):
        process = subprocess.Popen([START], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=self.environment)
        limit = time.monotonic() + LIMIT
        while not self.listens():
            self.assertLess(time.monotonic(), limit, "the server did not come up")
        process.send_signal(signal.SIGTERM)
        process.stdin.close()
        process.wait(LIMIT)
        self.assertFalse(self.listens(), "the server was left behind")


class StandIns(unittest.TestCase):
    """With stand-ins for other programs in a PATH of their own."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="vencejo-path-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def stand_in(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text("#!/bin/bash\n" + textwrap.dedent(script))
        path.chmod(0o755)

    def log(self) -> list:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []


class Installing(StandIns):
    def need(self, *packages: str, euid: str):
        # EUID is read-only in bash, so the check is run on a copy that reads ours.
        library = (harness.stubs.TOP / "Scripts/lib/house.sh").read_text()
        copy = self.folder / "Scripts/lib/house.sh"
        copy.parent.mkdir(parents=True)
        copy.write_text(library.replace("EUID", "PRETENDED_EUID"))
        return subprocess.run(
            ["bash", "-c", 'source "$0"; need_packages "$@"', copy, *packages],
            capture_output=True, text=True, timeout=30, env={
                "PATH": f"{self.folder}:/usr/bin:/bin", "PRETENDED_EUID": euid,
                "LOG": str(self.folder / "log")})

    def test_nothing_missing_nothing_said(self):
        self.stand_in("apt-get", "exit 1")
        ended = self.need("bash", "coreutils", euid="0")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))

    def test_without_the_right_it_prints_the_line_and_stops(self):
        self.stand_in("sudo", "exit 1")
        self.stand_in("apt-get", 'echo "$@" >>"$LOG"')
        ended = self.need("bash", "no-such-dev", "nor-this-dev", euid="1000")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("sudo apt-get install no-such-dev nor-this-dev\n", ended.stderr)
        self.assertEqual(self.log(), [])

    def test_with_a_sudo_that_asks_nothing_it_installs(self):
        self.stand_in("sudo", '[ "$1" = -n ] && shift && exec "$@"')
        self.stand_in("apt-get", 'echo "$@" >>"$LOG"')
        ended = self.need("bash", "no-such-dev", euid="1000")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(len(self.log()), 1, "the lists are fetched only when they are needed")
        self.assertRegex(self.log()[0], r"install .*no-such-dev$")

    def test_old_package_lists_are_renewed(self):
        self.stand_in("apt-get", """
            echo "$@" >>"$LOG"
            case "$*" in *install*) grep -q update "$LOG" || exit 100 ;; esac
        """)
        ended = self.need("no-such-dev", euid="0")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        verbs = [next(w for w in ("install", "update") if w in line) for line in self.log()]
        self.assertEqual(verbs, ["install", "update", "install"])


class Building(StandIns):
    def setUp(self):
        super().setUp()
        (self.folder / "Scripts").mkdir()
        shutil.copytree(harness.stubs.TOP / "Scripts/lib", self.folder / "Scripts/lib")
        self.source = self.folder / "Sources/vencejo/main.swift"
        self.source.parent.mkdir(parents=True)
        self.source.write_text("first\n")
        (self.folder / "Package.swift").write_text("package\n")
        self.stand_in("swift", """
            echo "$@" >>"$LOG"
            grep -q broken Sources/vencejo/main.swift && { echo "error: broken"; exit 1; }
            mkdir -p .build/release && touch .build/release/vencejo
            chmod +x .build/release/vencejo
        """)

    def build(self):
        return subprocess.run(
            ["bash", "-c", "source Scripts/lib/house.sh; build_release vencejo"],
            capture_output=True, text=True, timeout=30, cwd=self.folder, env={
                "PATH": f"{self.folder}:/usr/bin:/bin", "LOG": str(self.folder / "log")})

    def test_builds_only_what_changed(self):
        self.assertEqual(self.build().returncode, 0)
        self.assertEqual(self.log(), ["build -c release --product vencejo"])
        again = self.build()
        self.assertEqual((again.returncode, again.stdout, again.stderr), (0, "", ""))
        self.assertEqual(len(self.log()), 1, "nothing had changed")
        for change in (
            lambda: self.source.write_text("second\n"),
            lambda: (self.source.parent / "new.swift").write_text(""),
            lambda: (self.source.parent / "new.swift").unlink(),
            lambda: (self.folder / "Package.swift").write_text("another\n"),
            lambda: (self.folder / ".build/release/vencejo").unlink(),
        ):
            before = len(self.log())
            change()
            self.assertEqual(self.build().returncode, 0)
            self.assertEqual(len(self.log()), before + 1)

    def test_a_failed_build_says_so_and_is_tried_again(self):
        self.source.write_text("broken\n")
        for _ in range(2):
            ended = self.build()
            self.assertEqual(ended.returncode, 1)
            self.assertIn("error: broken", ended.stderr)
        self.source.write_text("mended\n")
        self.assertEqual(self.build().returncode, 0)


if __name__ == "__main__":
    unittest.main()
