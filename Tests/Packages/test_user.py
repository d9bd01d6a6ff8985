"""Handlers and interceptors of a user's package compile unchanged, however it sets the language.

The package in user/ is built and run once for each setting; its stubs come from the
plugin as a user's would.
"""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

import stubs

HERE = Path(__file__).resolve().parent
SETTINGS = ["plain", "upcoming", "swift-5"]
SAID = ["hola, ana", "1 ben", "2 ben", "3 ben", "ana ben", '["hola"]', "2"]
# One folder for all packages: what they share is built once.
SCRATCH = stubs.TOP / ".build" / "packages"


def run(command: list[str], folder: Path, limit: float = 600, **environment: str) -> str:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit,
                           stdin=subprocess.DEVNULL, env={**os.environ, **environment})
    if ended.returncode != 0:
        raise AssertionError(f"{command}: exit {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def plugin() -> Path:
    path = Path(os.environ.get("VENCEJO_ECHO", "")).parent / "protoc-gen-vencejo"
    if not path.is_file() or shutil.which("protoc") is None:
        raise unittest.SkipTest("no plugin or no protoc")
    return path


class UserPackage(unittest.TestCase):
    def check(self, setting: str):
        folder = SCRATCH.parent / "user-package"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(HERE / "user", folder)
        api = folder / "Sources" / "UserAPI"
        api.mkdir()
        run(["protoc", f"--plugin={plugin()}", "-I.", f"--vencejo_out={api}",
             "--vencejo_opt=module=UserAPI,namespace=User", "api.proto"], folder)
        said = run(["swift", "run", "--quiet", "--scratch-path", str(SCRATCH), "user"], folder,
                   USER_SETTINGS=setting, VENCEJO_PACKAGE=str(stubs.TOP))
        self.assertEqual(said.split("\n")[:-1], SAID)


for _setting in SETTINGS:
    setattr(UserPackage, f"test_{_setting.replace('-', '_')}",
            lambda self, setting=_setting: self.check(setting))


if __name__ == "__main__":
    unittest.main()
