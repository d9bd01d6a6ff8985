"""The newcomer's tutorial, done as its page says: files and commands are taken from the text."""

import os
import re
import shutil
import subprocess
import unittest

import harness
import stubs
from test_user import SCRATCH, run

PAGE = stubs.TOP / "Sources/VencejoRPC/VencejoRPC.docc/FirstService.md"


class Tutorial(unittest.TestCase):
    def test_as_the_page_says(self):
        text = PAGE.read_text()
        above = stubs.TOP / ".build" / "tutorial"
        shutil.rmtree(above, ignore_errors=True)
        folder = above / "library"
        folder.mkdir(parents=True)
        (above / "vencejo").symlink_to(stubs.TOP, target_is_directory=True)
        files = re.findall(r"^`([^`\n]+)`:\n\n```\w*\n(.*?)^```$", text, re.S | re.M)
        self.assertEqual(sorted(name for name, _ in files), [
            "Package.swift", "Sources/LibraryAPI/Book+Description.swift",
            "Sources/LibraryAPI/library.proto",
            "Sources/LibraryAPI/vencejo.options", "Sources/library-client/main.swift",
            "Sources/library-server/main.swift"])
        for name, content in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        [running] = re.findall(r"^```sh\n(.*?)^```$", text, re.S | re.M)
        [said] = re.findall(r"prints:\n\n```\n(.*?)^```$", text, re.S | re.M)

        # As the page, but for the folder that other packages share, a free port, and a wait
        # for the server itself.
        run(["swift", "build", "--quiet", "--scratch-path", str(SCRATCH)], folder)
        self.assertIn("library-server 127.0.0.1:7000", running)
        server = subprocess.Popen(
            ["stdbuf", "-oL", SCRATCH / "debug" / "library-server", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait, harness.LIMIT)
        self.addCleanup(server.terminate)
        address = server.stdout.readline().removeprefix("listening on ").strip()
        self.assertEqual(run([str(SCRATCH / "debug" / "library-client"), address], folder), said)


if __name__ == "__main__":
    unittest.main()
