"""The notes app in two languages: one device takes the tour, the other refreshes by its
subscription; and once more with the second device away meanwhile."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import harness
import stubs

HERE = Path(__file__).resolve().parent
TOUR = [
    "notes: Ideas=fly, Shopping=milk",
    "conflict: RECORD_CHANGED",
    "merged: To buy=milk, bread / milk, eggs",
    "batch: BATCH_ABORTED RECORD_CHANGED",
    "batch: saved RECORD_CHANGED",
    "notes: Done=!, Third=kept, To buy=milk, bread / milk, eggs",
]


def command(language: str) -> list[str]:
    if language == "python":
        return [sys.executable, str(HERE / "python/notes.py")]
    for build in ("release", "debug"):
        program = stubs.TOP / ".build" / build / "notes"
        if program.exists():
            return [str(program)]
    raise unittest.SkipTest("no notes: build the product notes")


class Device:
    def __init__(self, language: str, *arguments: str):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [*command(language), *arguments], stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**os.environ, "PYTHONPATH": stubs.folder})

    def line(self) -> str:
        return self.process.stdout.readline().rstrip("\n")

    def rest(self) -> list[str]:
        lines = [line.rstrip("\n") for line in self.process.stdout]
        code = self.process.wait(60)
        self.log.seek(0)
        if code != 0:
            raise AssertionError(f"ended with {code}: {self.log.read()[-3000:]}")
        return lines

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


class NotesApp(unittest.TestCase):
    def devices(self, writer: str, reader: str):
        server = harness.Server()
        self.addCleanup(server.close)
        # A container comes into being when an administrator uses it: the first to sign up is one.
        handle = "ana"

        def device(language: str, role: str) -> Device:
            made = Device(language, server.address, handle, role)
            self.addCleanup(made.close)
            return made

        second = device(reader, "watch")
        self.assertEqual(second.line(), "missed: 0, badge 0")
        self.assertEqual(second.line(), "watching")
        self.assertEqual(device(writer, "tour").rest(), TOUR)
        self.assertEqual(second.rest()[-1:], TOUR[-1:])

    def test_swift_writes_and_python_refreshes(self):
        self.devices("swift", "python")

    def test_python_writes_and_swift_refreshes(self):
        self.devices("python", "swift")

    def test_what_fires_while_nobody_listens_waits(self):
        server = harness.Server()
        self.addCleanup(server.close)
        # Subscribes, and is gone.
        away = Device("python", server.address, "ana", "watch")
        self.addCleanup(away.close)
        self.assertEqual(away.line(), "missed: 0, badge 0")
        self.assertEqual(away.line(), "watching")
        away.close()
        tour = Device("python", server.address, "ana", "tour")
        self.addCleanup(tour.close)
        self.assertEqual(tour.rest(), TOUR)
        back = Device("python", server.address, "ana", "watch")
        self.addCleanup(back.close)
        # Created: first, second, third, last; updated: first twice; deleted: second.
        self.assertEqual(back.line(), "missed: 7, badge 7")


if __name__ == "__main__":
    unittest.main()
