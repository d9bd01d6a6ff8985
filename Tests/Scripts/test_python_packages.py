"""need_python makes one environment that grows: scripts that ask for different packages share it."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import stubs

# Stands for an environment's python: notes what pip was asked for.
PYTHON = "#!/bin/sh\necho \"$@\" >>\"$0.log\"\n"


class PythonPackages(unittest.TestCase):
    def setUp(self):
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copytree(stubs.TOP / "Scripts/lib", self.top / "Scripts/lib",
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.venv = self.top / ".build/venv"
        (self.venv / "bin").mkdir(parents=True)
        python = self.venv / "bin/python"
        python.write_text(PYTHON)
        python.chmod(0o755)
        (self.venv / "installed").write_text("")
        (self.top / "few.txt").write_text("# why\nalpha==1\n")
        (self.top / "more.txt").write_text("beta==2 # why\n\nalpha-tools==7\n")

    def need(self, *files):
        """How often pip ran, and what is there afterwards."""
        subprocess.run(
            ["bash", "-c", "source Scripts/lib/house.sh; source Scripts/lib/python.sh; need_python \"$@\"",
             "need", *files], cwd=self.top, check=True, capture_output=True, text=True, timeout=30)
        log = self.venv / "bin/python.log"
        return (len(log.read_text().splitlines()) if log.exists() else 0,
                (self.venv / "installed").read_text().split())

    def test_it_grows_and_does_not_shrink(self):
        self.assertEqual(self.need("few.txt"), (1, ["alpha==1"]))
        grown = ["alpha-tools==7", "alpha==1", "beta==2"]
        self.assertEqual(self.need("few.txt", "more.txt"), (2, grown))
        self.assertEqual(self.need("few.txt"), (2, grown))
        self.assertEqual(self.need("more.txt"), (2, grown))

    def test_another_version_takes_the_place_of_the_one_there(self):
        self.need("few.txt", "more.txt")
        (self.top / "few.txt").write_text("alpha==3\n")
        self.assertEqual(self.need("few.txt"), (2, ["alpha-tools==7", "alpha==3", "beta==2"]))

    def test_many_at_once_install_once(self):
        words = "source Scripts/lib/house.sh; source Scripts/lib/python.sh; need_python few.txt more.txt"
        for process in [subprocess.Popen(["bash", "-c", words], cwd=self.top, stderr=subprocess.DEVNULL)
                        for _ in range(8)]:
            self.assertEqual(process.wait(30), 0)
        self.assertEqual(self.need("few.txt")[0], 1)


if __name__ == "__main__":
    unittest.main()
