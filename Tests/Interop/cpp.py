"""Builds the C++ peers with Debian's gRPC, once per run."""

import functools
import shutil
import subprocess
import unittest
from pathlib import Path

import stubs

SOURCES = Path(__file__).resolve().parent / "cpp"
BUILT = stubs.TOP / ".build" / "interop-cpp"


@functools.cache
def _build() -> None:
    for tool in ("g++", "make", "protoc", "grpc_cpp_plugin"):
        if shutil.which(tool) is None:
            raise unittest.SkipTest(f"no {tool}: the C++ peers cannot be built")
    if not Path("/usr/include/grpcpp/grpcpp.h").exists():
        raise unittest.SkipTest("no libgrpc++-dev: the C++ peers cannot be built")
    made = subprocess.run(
        ["make", "-j2", "-C", str(SOURCES), f"OUT={BUILT}", f"TOP={stubs.TOP}"],
        capture_output=True, text=True, timeout=600)
    if made.returncode != 0:
        raise RuntimeError(made.stdout + made.stderr)


def built(name: str) -> str:
    _build()
    return str(BUILT / name)
