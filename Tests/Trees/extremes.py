"""Generates and compiles .proto files that go to the generator's limits; see Scripts/extremes.

    extremes.py PLUGIN MODULES WORK CASES [SWIFTC ARGUMENTS...]

CASES names some of them, separated by blanks; none stands for all.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from google.protobuf.compiler import plugin_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F

SCALARS = ["int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
           "sfixed64", "bool", "string", "bytes", "double", "float"]
# Longer than any of it should take, on any machine: then it is no limit but a hang.
HANG = 1200


def nested():
    """Messages declared in each other, 64 levels deep, each with a field of the next one: a request
    by hand, as protoc itself reads no more than 32."""
    request = plugin_pb2.CodeGeneratorRequest(
        parameter="module=Extreme_nested", file_to_generate=["nested.proto"])
    file = request.proto_file.add(name="nested.proto", package="extreme.nested", syntax="proto3")
    messages, path = file.message_type, ".extreme.nested"
    for level in range(64):
        path += f".Level{level}"
        message = messages.add(name=f"Level{level}")
        kinds = [F.TYPE_INT32, F.TYPE_STRING] + ([F.TYPE_MESSAGE] if level < 63 else [])
        for number, kind in enumerate(kinds, 1):
            field = message.field.add(
                name=f"field_{number}", number=number, type=kind, label=F.LABEL_OPTIONAL)
            if kind == F.TYPE_MESSAGE:
                field.type_name = f"{path}.Level{level + 1}"
        messages = message.nested_type
    return request


def large_enum():
    """An enum of 5,000 values."""
    values = ["  LARGE_UNSPECIFIED = 0;"] + [f"  LARGE_VALUE_{n} = {n};" for n in range(1, 5000)]
    return ["enum Large {", *values, "}", "message Holder { Large large = 1; repeated Large all = 2; }"]


def wide(count=500):
    """A message of 500 fields of all kinds."""
    lines = ["message Wide {"]
    for n in range(1, count + 1):
        kind = SCALARS[n % len(SCALARS)]
        match n % 10:
            case 0: lines.append(f"  repeated {kind} list_{n} = {n};")
            case 1: lines.append(f"  optional {kind} maybe_{n} = {n};")
            case 2: lines.append(f"  Part part_{n} = {n};")
            case 3: lines.append(f"  map<string, {kind}> map_{n} = {n};")
            case _: lines.append(f"  {kind} plain_{n} = {n};")
    return [*lines, "}", "message Part { string a = 1; Wide wide = 2; }"]


def recursive():
    """A hundred messages that all lead to each other: by fields, lists, maps and oneofs."""
    lines = []
    for n in range(100):
        a, b, c, d, e = (f"M{(n + step) % 100}" for step in (1, 7, 31, 50, 99))
        lines += [f"message M{n} {{", f"  {a} one = 1;", f"  repeated {b} many = 2;",
                  f"  map<string, {c}> named = 3;", "  oneof choice {", f"    {d} left = 4;",
                  f"    {e} right = 5;", "  }", f"  M{n} self = 6;", "}"]
    return lines


def long():
    """A file of 20,000 lines: 1,000 messages, 300 enums, 50 services, all with comments."""
    lines = []
    for n in range(1000):
        lines += [f"// The message number {n}.", f"message Message{n} {{"]
        for field in range(1, 8):
            kind = SCALARS[(n + field) % len(SCALARS)]
            lines += [f"  // What {field} says.", f"  {kind} field_{field} = {field};"]
        lines += [f"  Message{n // 2} up = 8;", f"  repeated Kind{n % 300} kinds = 9;"]
        lines += ["}", ""]
    for n in range(300):
        lines += [f"enum Kind{n} {{", f"  KIND{n}_UNSPECIFIED = 0;"]
        lines += [f"  KIND{n}_V{value} = {value};" for value in range(1, 10)] + ["}", ""]
    for n in range(50):
        lines += [f"service Service{n} {{"]
        lines += [f"  rpc Call{call}(Message{n}) returns (stream Message{call});" for call in range(4)] + ["}"]
    while len(lines) < 19_996:
        lines.append("// More of it.")
    return lines


def measured(command):
    """Seconds of processor time and megabytes a command takes; what it says, if it fails."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            ["timeout", str(HANG), *(str(c) for c in command)], stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        log.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, status, log.read()


def main():
    plugin, modules, work, cases, *arguments = sys.argv[1:]
    work = pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    failed = False
    print(f"{'':10}{'lines':>8}{'Swift':>9}{'generate':>10}{'debug':>16}{'release':>16}")
    for make in (nested, large_enum, wide, recursive, long):
        name = make.__name__
        if cases and name not in cases.split():
            continue
        proto = work / f"{name}.proto"
        lines = make()
        out = work / name
        subprocess.run(["rm", "-rf", out], check=True)
        out.mkdir()
        row, said = [], ""
        if make is nested:
            began = time.monotonic()
            answer = subprocess.run([plugin], input=lines.SerializeToString(), stdout=subprocess.PIPE, check=True)
            seconds, status = time.monotonic() - began, 0
            (file,) = plugin_pb2.CodeGeneratorResponse.FromString(answer.stdout).file
            (out / file.name).write_text(file.content)
            lines = []
        else:
            lines = ['syntax = "proto3";', f"package extreme.{name};", ""] + lines
            proto.write_text("\n".join(lines) + "\n")
            seconds, _, status, said = measured(
                ["protoc", f"--plugin={plugin}", f"--vencejo_out={out}",
                 f"--vencejo_opt=module=Extreme_{name}", "-I", work, proto.name])
        row.append(f"{seconds:8.1f} s")
        files = list(out.glob("*.swift"))
        for mode in (["-Onone"], ["-O", "-wmo"]):
            if status != 0:
                break
            seconds, megabytes, status, said = measured(
                ["swiftc", "-emit-object", *mode, "-module-name", f"Extreme_{name}", "-swift-version", "6",
                 "-warnings-as-errors", "-parse-as-library", "-I", modules, *arguments, "-o",
                 out / "object.o", *files])
            row.append(f"{seconds:7.1f} s {megabytes:4.0f} MB")
        count = sum(len(file.read_text().splitlines()) for file in files)
        print(f"{name:10}{len(lines):8}{count:9}{''.join(f'{cell:>16}' if 'MB' in cell else f'{cell:>10}' for cell in row)}",
              flush=True)
        if status != 0:
            failed = True
            print(f"FAILED {name}: {said[-2000:]}")
    sys.exit(failed)


main()
