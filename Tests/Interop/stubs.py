"""Python stubs of Protos/, interop.proto and gRPC's test protos, generated anew for each run.

Importing this module generates them into a temporary folder and puts that
folder on the path, so `import stubs` comes before the imports of what it makes.
"""

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
PROTOS = TOP / "Protos"

folder = tempfile.mkdtemp(prefix="vencejo-stubs-")
atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _generate() -> None:
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    sources = [str(path.relative_to(PROTOS)) for path in sorted(PROTOS.rglob("vencejo/**/*.proto"))]
    own = HERE / "Protos"
    testing = [str(path.relative_to(own)) for path in sorted(own.rglob("*.proto"))]
    arguments = [
        "protoc", f"-I{PROTOS}", f"-I{HERE}", f"-I{own}", f"-I{well_known}",
        f"--python_out={folder}", f"--grpc_python_out={folder}",
        *sources, "interop.proto", *testing,
    ]
    if protoc.main(arguments) != 0:
        raise RuntimeError("protoc could not generate Python stubs: " + " ".join(arguments))
    sys.path.insert(0, folder)


_generate()
