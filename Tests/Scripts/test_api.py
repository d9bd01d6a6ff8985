"""Scripts/api: what counts as broken, and what is counted as a type."""

import importlib.machinery
import importlib.util
import subprocess
import tempfile
import unittest
from pathlib import Path

import stubs

LOADER = importlib.machinery.SourceFileLoader("api", str(stubs.TOP / "Scripts" / "api"))
api = importlib.util.module_from_spec(importlib.util.spec_from_loader("api", LOADER))
LOADER.exec_module(api)


class API(unittest.TestCase):
    def test_changes(self):
        gone, added = api.changes("A: struct A\nA.b: var b: Int\n", "A: struct A\nA.b: var b: Int?\n")
        self.assertEqual((gone, added), (["A.b: var b: Int"], ["A.b: var b: Int?"]))
        self.assertEqual(api.changes("A: struct A\n", "A: struct A\nB: struct B\n")[0], [])

    def test_types(self):
        found = [("Channel", "swift.class", "class Channel", ""), ("Health", "swift.class", "", ""),
                 ("Health.Status", "swift.enum", "", ""), ("Channel.init(_:)", "swift.init", "", "")]
        self.assertEqual([path for path, *_ in api.types(found)], ["Channel"])

    def test_breaking_since_a_tag(self):
        """In a repository of its own: a tag, then a declaration less."""
        version = '"0.1.0"'
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)

            def git(*arguments):
                subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
                               cwd=top, check=True, capture_output=True)

            (top / "Scripts").mkdir()
            (top / "Scripts/api").write_text((stubs.TOP / "Scripts/api").read_text())
            (top / "Tests/API").mkdir(parents=True)
            (top / "Sources/VencejoRPC").mkdir(parents=True)
            (top / "Sources/VencejoRPC/Version.swift").write_text(f"let version = {version}\n")
            record = top / "Tests/API/VencejoRPC.txt"
            record.write_text("A: struct A\nB: struct B\n")
            (top / "Tests/API/other.binpb").write_bytes(b"\xff\x83")  # None of its own.
            git("init", "-q")

            def breaking() -> tuple[int, str]:
                ended = subprocess.run(["python3", "Scripts/api", "--breaking"], cwd=top,
                                       capture_output=True, text=True)
                return ended.returncode, ended.stdout

            git("add", "-A")
            git("commit", "-qm", "first")
            self.assertEqual(breaking()[0], 0)
            git("tag", "v0.1.0")
            record.write_text("A: struct A\nB: struct B\nC: struct C\n")
            self.assertEqual(breaking()[0], 0, "what is new breaks nobody")
            record.write_text("A: struct A\n")
            code, said = breaking()
            self.assertEqual(code, 1)
            self.assertIn("VencejoRPC: B: struct B", said)
            (top / "Sources/VencejoRPC/Version.swift").write_text('let version = "0.2.0"\n')
            self.assertEqual(breaking()[0], 0, "another minor version may")


if __name__ == "__main__":
    unittest.main()
