"""What README.md shows works as shown."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import harness
import stubs

README = (stubs.TOP / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="vencejo-home-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.environment = {
            # What the console remembers goes there too.
            **os.environ, "HOME": cls.folder,
            "VENCEJO_DATA": f"{cls.folder}/data", "VENCEJO_PROGRAM": harness.program(),
        }

    def sh(self, script: str, address: str):
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                              cwd=stubs.TOP, stdin=subprocess.DEVNULL,
                              env={**self.environment, "VENCEJO_LISTEN": address})

    def test_tour_and_python(self):
        first, second = blocks("sh")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        ended = self.sh(first, address)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended.stdout)
        for shown in ("hola, ana", "hola, ben", "(2)", "buy milk", "pay the rent", "call Ben"):
            self.assertIn(shown, ended.stdout)
        queried = ended.stdout[ended.stdout.rindex("Name"):]
        self.assertEqual(re.findall(r"\b(milk|rent|call)\b", queried.split("\n", 1)[1])[0:1], ["rent"])

        began = time.monotonic()
        ended = self.sh(second, address)
        took = time.monotonic() - began
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended.stdout)
        self.assertLess(took, 3, "the second run is quick")
        self.assertIn("hola, ben", ended.stdout)
        names = re.findall(r"^(milk|rent|call)\b", ended.stdout, re.M)
        self.assertEqual(names, ["milk", "call", "rent"])

        [python] = blocks("python")
        server = harness.Peer([
            harness.program(), "serve", "--listen", "127.0.0.1:0", "--data",
            self.environment["VENCEJO_DATA"]])
        self.addCleanup(server.stop)
        ended = subprocess.run(
            [sys.executable, "-c", python.replace("127.0.0.1:7447", server.address)],
            capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": stubs.folder})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"chats/\S+ 0 hola, ben\n")

    def test_swift(self):
        source = stubs.TOP / "Tests/Interop/Swift/readme-example/main.swift"
        self.assertEqual(blocks("swift"), [source.read_text()])
        example = Path(os.environ.get("VENCEJO_ECHO", "")).parent / "readme-example"
        if not example.exists():
            self.skipTest("not built: swift build --product readme-example")
        ended = subprocess.run([example], capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout), (0, "hola!\n"), ended.stderr)

    def test_generating(self):
        plugin = stubs.TOP / ".build/debug/protoc-gen-vencejo"
        if not plugin.exists() or shutil.which("protoc") is None:
            self.skipTest("no plugin or no protoc")
        command = re.search(r"^    (protoc .*?[^\\])$", README, re.S | re.M)[1]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "Sources/MyAPI").mkdir(parents=True)
            (Path(folder) / "greetings.proto").write_text(
                'syntax = "proto3"; package a.b; message Hello { string text = 1; }')
            ended = subprocess.run(
                ["bash", "-c", command.replace(".build", f"{stubs.TOP}/.build")], cwd=folder,
                capture_output=True, text=True, timeout=60)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            made = "".join(path.read_text() for path in Path(folder).rglob("*.swift"))
            self.assertIn("struct Hello", made)
            self.assertIn("Greetings", made)

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
            self.assertTrue((stubs.TOP / target).exists(), target)

    def test_scripts_named_are_there(self):
        for script in set(re.findall(r"Scripts/\w+", README)):
            self.assertTrue(os.access(stubs.TOP / script, os.X_OK), script)


if __name__ == "__main__":
    unittest.main()
