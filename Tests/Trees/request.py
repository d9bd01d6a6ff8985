"""Runs a protoc plugin on the .proto files whose Python code folders hold.

    request.py generate PLUGIN OUTPUT PARAMETER FOLDER...

Writes the plugin's files into OUTPUT; fails when it answers differently a second time. Python's generated code embeds the descriptor of its file; it is read without running it. What the
files import is looked for in all folders beside it too. Files of google.protobuf are described,
not asked for.
"""

import ast
import pathlib
import subprocess
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


def request_for(parameter, folders):
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
    return request


def main():
    plugin, output, parameter, *folders = sys.argv[2:]
    request = request_for(parameter, folders).SerializeToString()
    answers = [
        subprocess.run([plugin], input=request, stdout=subprocess.PIPE, check=True).stdout
        for _ in range(2)
    ]
    if answers[0] != answers[1]:
        sys.exit("the same request, another answer")
    response = plugin_pb2.CodeGeneratorResponse.FromString(answers[0])
    if response.error:
        sys.exit(response.error)
    output = pathlib.Path(output)
    output.mkdir(parents=True)
    for file in response.file:
        (output / file.name).write_text(file.content)


main()
