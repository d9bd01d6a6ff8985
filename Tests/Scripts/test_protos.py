"""Scripts/protos refuses a name outside of buf's style and a change that breaks clients."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import stubs

PROTO = "Protos/vencejo/auth/v1/auth.proto"


class Protos(unittest.TestCase):
    def setUp(self):
        if not (Path(sys.executable).parent / "buf").exists():
            self.skipTest("no buf (it comes with --ci)")
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for folder in ("Protos", "Scripts", "Tests/API", "Tests/Interop"):
            shutil.copytree(stubs.TOP / folder, self.top / folder,
                            ignore=shutil.ignore_patterns("__pycache__"))
        (self.top / ".build").mkdir()
        (self.top / ".build/venv").symlink_to(Path(sys.executable).parent.parent)

    def run_after(self, old: str, new: str):
        path = self.top / PROTO
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))
        environment = {**os.environ, "GIT_DIR": str(self.top / "none")}
        return subprocess.run([self.top / "Scripts/protos"], env=environment,
                              capture_output=True, text=True, timeout=60)

    def test_an_addition_passes(self):
        ended = self.run_after("message SignOutResponse {}", "message SignOutResponse { bool a = 1; }")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_a_name_of_another_style_is_refused(self):
        ended = self.run_after("message SignOutResponse {}", "message SignOutResponse { bool aB = 1; }")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("aB", ended.stdout)

    def test_a_change_that_breaks_is_refused(self):
        ended = self.run_after("string access_token = 1;", "bytes access_token = 1;")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("access_token", ended.stdout)


if __name__ == "__main__":
    unittest.main()
