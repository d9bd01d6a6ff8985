"""Makes a request for a protoc plugin of the .proto files whose Python code a folder holds.

    request.py PARAMETER FOLDER... < nothing > request

Python's generated code embeds the descriptor of its file; it is read without running it. What the
files import is looked for in all folders beside it too. Files of google.protobuf are described,
not asked for.
"""

import ast
import pathlib
import sys

from google.protobuf import descriptor_pb2
from google.protobuf.compiler import plugin_pb2


def embedded(path: pathlib.Path):
    for node in ast.walk(ast.parse(path.read_bytes())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "AddSerializedFile"
        ):
            file = descriptor_pb2.FileDescriptorProto()
            file.ParseFromString(ast.literal_eval(node.args[0]))
            return file
    return None


def descriptors(folders):
    files = {}
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*_pb2.py")):
            file = embedded(path)
            if file is not None:
                files.setdefault(file.name, file)
    return files


def main():
    parameter, *folders = sys.argv[1:]
    wanted = descriptors(folders)
    site = next(p for p in pathlib.Path(folders[0]).parents if p.name == "site-packages")
    known = None
    request = plugin_pb2.CodeGeneratorRequest(parameter=parameter)
    done = set()

    def add(name):
        nonlocal known
        if name in done:
            return
        done.add(name)
        file = wanted.get(name)
        if file is None:
            known = known or descriptors([site, pathlib.Path(descriptor_pb2.__file__).parent])
            file = known.get(name)
        if file is None:
            sys.exit(f"nobody has {name}")
        for dependency in file.dependency:
            add(dependency)
        request.proto_file.append(file)
        if not name.startswith("google/protobuf/"):
            request.file_to_generate.append(name)

    for name in sorted(wanted):
        add(name)
    sys.stdout.buffer.write(request.SerializeToString())


main()
