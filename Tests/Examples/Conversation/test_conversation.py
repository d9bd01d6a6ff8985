"""The example clients talk to each other, each language in both roles.

While they talk the server is killed and comes back. Then each program is started anew and has to
go on from its token, and once more after the server was restored from a backup, where the token
is worth nothing and the server says Reset.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import stubs
import harness

HERE = Path(__file__).resolve().parent
BUILT = stubs.TOP / ".build" / "conversation"
# What has to be there to build each.
NEEDS = {
    "python": [],
    "go": ["go", "protoc", "protoc-gen-go"],
    "cpp": ["g++", "make", "protoc", "grpc_cpp_plugin"],
    "c": ["cc", "make", "protoc-c"],
}


@functools.cache
def command(language: str) -> list[str]:
    """Builds a client, once, and answers how to run it."""
    for tool in NEEDS[language]:
        if shutil.which(tool) is None:
            raise unittest.SkipTest(f"no {tool}: the client in {language} cannot be built")
    if language == "python":
        return [sys.executable, str(HERE / "python/conversation.py")]
    out = BUILT / language
    made = subprocess.run(["make", "-j2", "-C", str(HERE / language), f"OUT={out}", f"TOP={stubs.TOP}"],
                          capture_output=True, text=True, timeout=600)
    if made.returncode != 0:
        raise RuntimeError(made.stdout + made.stderr)
    return [str(out / "conversation")]


class Client:
    """A running client; what it says is read line by line."""

    def __init__(self, language: str, address: str, folder: str, handle: str, *role: str):
        self.name = f"{handle} ({language}, {role[0]})"
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [*command(language), address, folder, handle, *role], stdout=subprocess.PIPE,
            stderr=self.log, text=True, env={**os.environ, "PYTHONPATH": stubs.folder})

    def lines(self):
        for line in self.process.stdout:
            yield line.rstrip("\n")

    def until(self, word: str) -> None:
        for line in self.lines():
            if line.startswith(word):
                return
        self.ends_well()
        raise AssertionError(f"{self.name} ended without saying '{word}'")

    def ends_well(self) -> None:
        code = self.process.wait(90)
        self.log.seek(0)
        if code != 0:
            raise AssertionError(f"{self.name} ended with {code}: {self.log.read()[-3000:]}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        if self.process.wait() != 0:
            # Whoever failed first made the others wait in vain.
            self.log.seek(0)
            print(f"{self.name} ended with {self.process.returncode}: {self.log.read()[-1000:]}")
        self.process.stdout.close()
        self.log.close()


class Conversation(unittest.TestCase):
    def talk(self, host_language: str, guest_language: str):
        server = harness.Server()
        self.addCleanup(server.close)
        people = {"ana": host_language, "ben": guest_language}
        # Before they begin: nobody waits for the other one's compiler.
        for language in people.values():
            command(language)
        folders = {name: self.enterContext(tempfile.TemporaryDirectory()) for name in people}

        def client(name: str, *role: str) -> Client:
            made = Client(people[name], server.address, folders[name], name, *role)
            self.addCleanup(made.close)
            return made

        guest = client("ben", "guest")
        guest.until("signed in")
        host = client("ana", "host", "ben")
        host.until("restart the server")
        server.kill()
        server.start()
        host.until("done")
        host.ends_well()
        guest.until("done")
        guest.ends_well()

        def again(expected: str):
            for name in people:
                person = harness.Person.sign_in(server.address, name)
                texts = sorted(
                    (chat, str(item.sequence), item.content.text.text or item.content.media.caption)
                    for chat in person.chats() for item in person.messages(chat))
                person.close()
                back = client(name, "again")
                said = list(back.lines())
                back.ends_well()
                self.assertEqual(said[1], expected, back.name)
                rows = sorted(tuple(line.split("\t")) for line in said[2:-1])
                self.assertEqual(rows, texts, back.name)

        # Something happens while both are away.
        ana = harness.Person.sign_in(server.address, "ana")
        for chat in ana.chats():
            ana.send(chat, "while you were away")
        ana.close()
        again("resumed")

        # The same messages in another life of the database: tokens of the old one are refused.
        self.assertEqual(server.stop(), 0)
        copy = Path(folders["ana"]) / "backup.sqlite"
        restored = tempfile.mkdtemp(prefix="vencejo-data-")
        for arguments in (("backup", str(copy), "--data", server.data),
                          ("restore", str(copy), "--data", f"{restored}/data")):
            ended = harness.run("admin", *arguments)
            self.assertEqual(ended.returncode, 0, ended.stderr)
        shutil.rmtree(server.data)
        server.data = f"{restored}/data"
        self.addCleanup(shutil.rmtree, restored, ignore_errors=True)
        server.start()
        again("reset")

    def test_python_and_go(self):
        self.talk("python", "go")

    def test_go_and_cpp(self):
        self.talk("go", "cpp")

    def test_cpp_and_c(self):
        self.talk("cpp", "c")

    def test_c_and_python(self):
        self.talk("c", "python")


if __name__ == "__main__":
    unittest.main()
