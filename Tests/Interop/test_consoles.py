"""Two consoles, each in a terminal of its own (tmux): what people see."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest

import harness
from base import ServerCase
from harness import LIMIT
from vencejo.chat.v1 import chat_pb2

PASSWORD = "correct-horse-battery"


class Screen:
    """A console in a tmux window of 80 × 24."""

    def __init__(self, test, name: str, address: str, home: str = ""):
        self.test = test
        if not home:
            home = tempfile.mkdtemp(prefix="vencejo-home-")
            test.addCleanup(shutil.rmtree, home, ignore_errors=True)
        self.home = home
        self.base = ["tmux", "-L", f"vencejo-{os.getpid()}-{name}", "-f", "/dev/null"]
        self.tmux("new-session", "-d", "-x", "80", "-y", "24", "env", f"HOME={home}",
                  "LANG=C.UTF-8", "LC_ALL=C.UTF-8", harness.program(), "console", "--server", address)
        test.addCleanup(lambda: subprocess.run(
            [*self.base, "kill-server"], capture_output=True, timeout=LIMIT))

    def tmux(self, *arguments: str) -> str:
        return subprocess.run([*self.base, *arguments], check=True, capture_output=True, text=True,
                              timeout=LIMIT, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def enter(self, text: str = "") -> None:
        if text:
            self.type(text)
        self.tmux("send-keys", "Enter")

    def lines(self) -> list:
        return self.tmux("capture-pane", "-p").rstrip("\n").split("\n")

    def shows(self, holds, what: str) -> float:
        """Looks until the screen is as it should be; returns the seconds it took."""
        began = time.monotonic()
        while time.monotonic() - began < LIMIT:
            lines = self.lines()
            if holds(lines):
                return time.monotonic() - began
        self.test.fail(f"never seen: {what}\n" + "\n".join(self.lines()))

    def shows_text(self, text: str) -> float:
        return self.shows(lambda lines: any(text in line for line in lines), text)


class Consoles(ServerCase):
    def setUp(self):
        if shutil.which("tmux") is None:
            self.skipTest("no tmux")

    def test_a_message_appears_above_the_line_being_typed(self):
        ana = Screen(self, "ana", self.server.address)
        ben = Screen(self, "ben", self.server.address)
        ana.enter(f"sign-up ana {PASSWORD}")
        ana.shows_text("in as ana")
        ben.enter(f"sign-up ben {PASSWORD}")
        ben.shows_text("in as ben")
        ben.enter("chat new ana")
        ben.enter("are you there?")
        ana.shows_text("are you there?")
        ana.enter("open ben")
        ana.type("a half-typed line, 燕 🐦")
        ana.shows_text("a half-typed line, 燕 🐦")

        ben.enter("hola, ana")
        seconds = ana.shows_text("hola, ana")
        self.assertLess(seconds, 0.9, "well under a second")
        last = [line for line in ana.lines() if line.strip()][-1]
        self.assertIn("a half-typed line, 燕 🐦", last, "the line survives, at the bottom")

        ana.enter(" and its end")
        ben.shows_text("a half-typed line, 燕 🐦 and its end")
        # One's own on the right, others' on the left.
        others = next(line for line in ana.lines() if "hola, ana" in line)
        self.assertTrue(others.startswith("hola, ana"), others)
        own = next(line for line in ben.lines() if "hola, ana" in line and ">" not in line)
        self.assertGreater(len(own) - len(own.lstrip()), 30, own)

    def test_what_is_written_without_a_server_is_sent_by_the_next_console(self):
        server = harness.Server()
        self.addCleanup(server.close)
        ben = harness.Person(server.address, "ben")
        self.addCleanup(ben.close)
        ana = Screen(self, "offline", server.address)
        ana.enter(f"sign-up ana {PASSWORD}")
        ana.shows_text("in as ana")
        ana.enter("chat new ben")
        ana.enter("first")
        ana.shows(lambda lines: any("first" in line and "✓" in line for line in lines), "a tick")
        server.kill()
        ana.shows_text("offline>")
        ana.enter("second")
        ana.shows_text("offline, 1 queued>")
        ana.tmux("kill-server")

        # A console that was killed; the next has what the last one knew.
        ana = Screen(self, "again", server.address, ana.home)
        ana.shows_text("offline, 1 queued>")
        ana.enter("outbox")
        ana.shows(lambda lines: any("Ben" in line and "second" in line and "queued" in line
                                    for line in lines), "the message that waits")
        ana.enter("discard 7")
        ana.shows_text("there is no message 7")
        ana.enter("open ben")
        ana.shows(lambda lines: any("second" in line and "…" in line for line in lines),
                  "the message that waits, in its chat")
        self.assertTrue(any("first" in line for line in ana.lines()))
        ana.enter("third")
        ana.shows_text("offline, 2 queued>")
        server.start()
        ana.shows_text("now sent: third")
        ana.shows(lambda lines: any(line.startswith("ana · Ben>") for line in lines), "the prompt")
        ana.enter("/outbox")
        ana.shows_text("all is sent")
        chat = ben.call(ben.chat.ListChats, chat_pb2.ListChatsRequest()).chats[0]
        said = ben.call(
            ben.chat.ListMessages, chat_pb2.ListMessagesRequest(parent=chat.name)).messages
        self.assertEqual([message.content.text.text for message in said if message.sender],
                         ["first", "second", "third"])


if __name__ == "__main__":
    unittest.main()
