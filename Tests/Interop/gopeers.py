"""Builds the Go peers with Debian's grpc-go, once per run. Nothing is downloaded."""

import functools
import os
import shutil
import subprocess
import unittest
from pathlib import Path

import stubs

SOURCES = Path(__file__).resolve().parent / "Cases" / "go"
BUILT = stubs.TOP / ".build" / "interop-go"
DEBIAN = Path("/usr/share/gocode")
TESTING = "src/proto/grpc/testing"


def _run(command: list[str], **environment) -> None:
    made = subprocess.run(command, capture_output=True, text=True, timeout=600,
                          cwd=stubs.HERE / "Protos", env={**os.environ, **environment})
    if made.returncode != 0:
        raise RuntimeError(f"{command}: {made.stdout}{made.stderr}")


@functools.cache
def _build() -> None:
    for tool in ("go", "protoc", "protoc-gen-go"):
        if shutil.which(tool) is None:
            raise unittest.SkipTest(f"no {tool}: the Go peers cannot be built")
    if not (DEBIAN / "src/google.golang.org/grpc").is_dir():
        raise unittest.SkipTest("no golang-google-grpc-dev: the Go peers cannot be built")
    # A workspace of the old kind: Debian's libraries are no modules.
    workspace = BUILT / "workspace"
    package = workspace / "src" / "vencejo" / "testing"
    shutil.rmtree(workspace, ignore_errors=True)
    package.mkdir(parents=True)
    names = [f"{TESTING}/{name}.proto" for name in ("empty", "messages", "test")]
    here = ",".join(f"M{name}=vencejo/testing" for name in names)
    _run(["protoc", "-I.", f"--go_out=plugins=grpc,paths=source_relative,{here}:{BUILT}", *names])
    for made in (BUILT / TESTING).glob("*.go"):
        made.rename(package / made.name)
    for program in ("client", "server"):
        shutil.copytree(SOURCES / program, workspace / "src" / "vencejo" / program)
        _run(["go", "build", "-o", str(BUILT / program), f"vencejo/{program}"],
             GO111MODULE="off", GOPATH=f"{workspace}:{DEBIAN}", GOFLAGS="",
             GOCACHE=str(BUILT / "cache"), GOTOOLCHAIN="local")


def built(name: str) -> str:
    _build()
    return str(BUILT / name)
