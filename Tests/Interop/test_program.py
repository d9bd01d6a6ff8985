"""What the program says when it is used wrongly."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness
from base import ServerCase
from harness import LIMIT

VERBS = ("serve", "console", "call", "list")


class Usage(unittest.TestCase):
    def refused(self, *arguments: str, says: str, code: int = 0, **options):
        ended = harness.run(*arguments, **options)
        self.assertNotEqual(ended.returncode, 0, ended.stdout)
        if code:
            self.assertEqual(ended.returncode, code, ended.stderr)
        self.assertEqual(ended.stdout, "", "errors go to standard error")
        self.assertRegex(ended.stderr.lower(), says.lower())
        self.assertNotIn("fatal error", ended.stderr.lower())
        return ended

    def folder(self) -> str:
        made = tempfile.mkdtemp(prefix="vencejo-data-")
        self.addCleanup(shutil.rmtree, made, ignore_errors=True)
        return made

    def test_help(self):
        for arguments in (("--help",), *((verb, "--help") for verb in VERBS)):
            ended = harness.run(*arguments)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), arguments)
            self.assertIn("usage", ended.stdout.lower())
        for verb in VERBS:
            self.assertIn(verb, harness.run("--help").stdout)

    def test_nothing_and_unknown_words(self):
        self.refused(says="usage|--help", code=1)
        self.refused("fly", says="fly.*|--help", code=1)

    def test_unknown_flags(self):
        for verb in VERBS:
            ended = self.refused(verb, "--no-such-flag", says="no-such-flag", code=1)
            self.assertIn("--help", ended.stderr)

    def test_flags_without_or_with_bad_values(self):
        self.refused("serve", "--listen", says="--listen", code=1)
        self.refused("serve", "--listen", "nonsense", says="nonsense")
        self.refused("serve", "--listen", "127.0.0.1:99999", says="99999")
        self.refused("serve", "--threads", "none", "--data", self.folder(), says="threads")
        self.refused("serve", "--log-level", "loud", "--data", self.folder(), says="loud")

    def test_data_folder_that_is_a_file(self):
        path = os.path.join(self.folder(), "file")
        Path(path).write_text("not a folder")
        self.refused("serve", "--listen", "127.0.0.1:0", "--data", path, says=path)

    def test_data_that_is_no_database(self):
        server = harness.Server()
        self.addCleanup(server.close)
        self.assertEqual(server.stop(), 0)
        for path in databases(server.data):
            path.write_bytes(b"this is no database, " * 1000)
        self.refused("serve", "--listen", "127.0.0.1:0", "--data", server.data, says=server.data)

    def test_database_newer_than_the_program(self):
        server = harness.Server()
        self.addCleanup(server.close)
        self.assertEqual(server.stop(), 0, "SIGTERM is a regular end")
        found = databases(server.data)
        self.assertTrue(found, os.listdir(server.data))
        for path in found:
            with sqlite3.connect(path) as database:
                database.execute("PRAGMA user_version = 9999")
            database.close()
        self.refused("serve", "--listen", "127.0.0.1:0", "--data", server.data, says="newer")
        for path in found:
            with sqlite3.connect(path) as database:
                version = database.execute("PRAGMA user_version").fetchone()[0]
            self.assertEqual(version, 9999, "it was touched")

    def test_commands_from_a_folder(self):
        self.refused("console", "-f", self.folder(), says="directory")

    def test_results_that_find_no_room(self):
        with open("/dev/full", "w") as full:
            ended = subprocess.run([harness.program(), "--help"], stdout=full, stderr=subprocess.PIPE,
                                   timeout=LIMIT, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn(b"No space left", ended.stderr)

    def test_nobody_listens(self):
        for verb in (("list", "127.0.0.1:1"), ("call", "127.0.0.1:1", "a.B/C")):
            self.refused(*verb, says="127.0.0.1:1")
        ended = harness.run("console", "--server", "127.0.0.1:1", stdin="chats\n")
        self.assertNotEqual(ended.returncode, 0)


class Serving(ServerCase):
    def test_busy_port(self):
        folder = tempfile.mkdtemp(prefix="vencejo-data-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        ended = harness.run("serve", "--listen", self.server.address, "--data", folder)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn(self.server.address, ended.stderr)
        self.assertIn("hint: ", ended.stderr)
        self.assertEqual(ended.stdout, "")

    def test_data_in_use(self):
        """Two servers on one folder would each be right and both be wrong."""
        ended = harness.run("serve", "--listen", "127.0.0.1:0", "--data", self.server.data)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn(self.server.data, ended.stderr)

    def test_two_addresses(self):
        server = harness.Server("--listen", "127.0.0.1:0")
        self.addCleanup(server.close)
        self.assertEqual(server.stop(), 0)

    def test_terminate_right_after_the_announcement(self):
        for _ in range(10):
            server = harness.Server()
            self.addCleanup(server.close)
            self.assertEqual(server.stop(), 0)

    def test_terminate_drains(self):
        server = harness.Server()
        self.addCleanup(server.close)
        harness.Person(server.address, "ana").close()
        server.peer.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.peer.process.wait(LIMIT), 0)

    def test_quiet_console_prints_names_only(self):
        ended = harness.run(
            "console", "--server", self.server.address, "--quiet", "--profile", "quiet",
            stdin="sign-up quiet correct-horse-battery\nchats\nusers find quie\n"
                  "use container quiet\nzone new z\nzones\nput Note one n=1\nquery Note\nget Note\n")
        lines = ended.stdout.splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, r"^[a-z]+/[\w./-]+$")
        self.assertTrue(any(line.startswith("users/") for line in lines))
        self.assertIn("error", ended.stderr)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("exclude each other", harness.run(
            "console", "--quiet", "--json", "-c", "chats").stderr)

    def test_calls_that_make_no_sense(self):
        def call(*arguments):
            ended = harness.run("call", self.server.address, *arguments)
            self.assertNotEqual(ended.returncode, 0)
            self.assertEqual(ended.stdout, "")
            return ended.stderr

        info = "vencejo.auth.v1.AuthService/GetServerInfo"
        sign_in = "vencejo.auth.v1.AuthService/SignIn"
        self.assertIn("NoSuch", call("vencejo.auth.v1.AuthService/NoSuch"))
        self.assertIn("no.Such", call("no.Such/Thing"))
        self.assertTrue(call("nonsense"))
        for junk in ("{", '{"deviceId": 1}', '{"noSuchField": 1}', "[]", '{"deviceId": "\\ud800"}',
                     "[" * 500, '{"deviceId": "a"} trailing'):
            self.assertTrue(call(sign_in, "-d", junk), junk)
        self.assertTrue(call(info, "-H", "no colon"))
        bad = ("-H", "authorization: Bearer nonsense")
        self.assertIn("UNAUTHENTICATED", call(
            "vencejo.auth.v1.AuthService/GetUser", "-d", '{"name":"users/me"}', *bad).upper())
        # It lives on.
        ended = harness.run("call", self.server.address, info)
        self.assertTrue(json.loads(ended.stdout))


def databases(folder: str) -> list:
    return [path for path in Path(folder).rglob("*")
            if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3"]


if __name__ == "__main__":
    unittest.main()
