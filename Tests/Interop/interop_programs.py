"""Where our programs of gRPC's interoperability tests are."""

import os
import unittest
from pathlib import Path


def swift(name: str) -> str:
    """`client` or `server`."""
    beside = os.environ.get("VENCEJO_ECHO", "")
    path = Path(beside).parent / f"vencejo-interop-{name}"
    if not beside or not path.is_file():
        raise unittest.SkipTest(f"not built: swift build --product vencejo-interop-{name}")
    return str(path)
