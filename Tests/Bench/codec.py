"""What Scripts/bench/codec does, once everything it needs is there."""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / ".build/bench"
COUNTS = HERE / "counts.json"
OPERATIONS = ["encode", "decode", "json-encode", "json-decode"]
# How many runs to count over; of the dearer messages fewer.
RUNS = {"chat": 200, "record": 200, "packed": 20, "blob": 4, "descriptor": 10, "struct": 4}
# A count may grow by so much before the check fails.
TOLERANCE = 0.05
# What decoding may ask the allocator for, counted by hand: one allocation for each string of more
# than 15 bytes, each array, map and boxed message, none else. Encoding a message of up to a
# kilobyte asks for the result.
EXACT = {
    "chat decode": 7 + 1 + 1,  # strings; the map; the message
    "record decode": 4 + 3 + 1,  # strings; tags, owners, bytes_value; the message
    "packed decode": 1,
    "blob decode": 1,
    "chat encode": 1,
    "record encode": 1,
}


def run(*command, **options):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
    return result


def messages():
    """The messages by name, filled the same way each time."""
    from google.protobuf import descriptor_pb2, struct_pb2

    import bench_pb2

    chance = random.Random(504)
    chat = bench_pb2.ChatMessage(
        name="chats/01J9ZQ7T4M8V2K/messages/01930f6c-7c2e-7d35-9f0a-4b1e6d2c8a11",
        chat="chats/01J9ZQ7T4M8V2K",
        sequence=1_234_567,
        revision=3,
        request_id="5c0e1f0a-8a3e-4d56-b1c3-2f7e9d0a6b42",
        text="Are you coming on Sunday? We meet at eleven by the old lighthouse; "
        "bring the blue tent, please, and something warm for the night.",
    )
    chat.create_time.seconds, chat.create_time.nanos = 1_790_000_000, 123_456_789
    chat.sender.user, chat.sender.display_name = "users/ana", "Ana Golondrina"
    chat.quote.message = "chats/01J9ZQ7T4M8V2K/messages/01930f6c-7c2e-7d35-9f0a-000000000000"
    chat.quote.text, chat.quote.sequence = "who is coming on Sunday?", 1_234_560
    chat.labels.update({"client": "console", "language": "en", "thread": ""})
    chat.labels["thread"] = "x" * (504 - chat.ByteSize())
    assert chat.ByteSize() == 504, chat.ByteSize()

    record = bench_pb2.Record(
        double_value=3.25, float_value=-1.5, int32_value=-7, int64_value=1 << 40,
        uint32_value=77_777, uint64_value=1 << 60, sint32_value=-300, sint64_value=-(1 << 35),
        fixed32_value=9, fixed64_value=10, sfixed32_value=-11, sfixed64_value=-12, bool_value=True,
        string_value="a string of some length", bytes_value=bytes(range(40)), priority=2,
        tags=["one", "a tag of twenty char", "three"], limit=0,
        owners=[bench_pb2.Sender(user="users/ana", display_name="Ana"),
                bench_pb2.Sender(user="users/ben", display_name="Ben, who has a longer name")])
    record.second.message, record.second.text = "chats/1/messages/2", "hola"

    packed = bench_pb2.Packed(values=[chance.getrandbits(chance.choice(range(1, 64))) for _ in range(10_000)])
    blob = bench_pb2.Blob(data=chance.randbytes(1 << 20))

    # As protoc 3.21 has it, so that nothing in it is beyond that version.
    described = WORK / "descriptor.set"
    run("protoc", "-I", "/usr/include", f"--descriptor_set_out={described}", "google/protobuf/descriptor.proto")
    descriptors = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes())

    struct = struct_pb2.Struct()
    words = "swift nest wing cliff tower feather thermal autumn Übersee 燕子".split()
    items = []
    while len(json.dumps(items)) < 100_000:
        items.append({
            "id": len(items), "name": " ".join(chance.choice(words) for _ in range(4)),
            "score": chance.random() * 1000, "active": chance.random() < 0.5, "parent": None,
            "tags": [chance.choice(words) for _ in range(chance.randrange(5))],
            "position": {"x": chance.randrange(-500, 500), "y": chance.randrange(-500, 500) / 4},
        })
    struct.update({"items": items, "total": len(items)})
    return {"chat": chat, "record": record, "packed": packed, "blob": blob,
            "descriptor": descriptors.file[0], "struct": struct}


def prepare(inputs):
    """Builds both programs and writes the messages; answers with the programs."""
    WORK.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "grpc_tools.protoc", "-I", HERE, f"--python_out={WORK}", "bench.proto")
    run("protoc", "-I", HERE, f"--cpp_out={WORK}", "bench.proto")
    cpp, source = WORK / "codec-cpp", HERE / "codec.cc"
    run("g++", "-O2", "-o", cpp, source, WORK / "bench.pb.cc", f"-I{WORK}", "-lprotobuf")
    run("gcc", "-O2", "-shared", "-fPIC", "-o", WORK / "mallocs.so", HERE / "mallocs.c")
    # SwiftPM does not look for new files in a package it depends on until this one changes.
    (HERE / "Package.swift").touch()
    build = ["swift", "build", "-c", "release", "--package-path", HERE, "--scratch-path", WORK / "swift"]
    run(*build, "--product", "codec-bench")
    run(*build, "--product", "binary-only")
    swift = Path(run(*build, "--show-bin-path").stdout.strip()) / "codec-bench"

    sys.path.insert(0, str(WORK))
    from google.protobuf import json_format

    all_messages = messages()
    for name, message in all_messages.items():
        (inputs / f"{name}.bin").write_bytes(message.SerializeToString(deterministic=True))
        (inputs / f"{name}.json").write_text(
            json_format.MessageToJson(message, indent=None, ensure_ascii=False))
    return {"ours": swift, "C++": cpp}, all_messages


def check(programs, inputs, all_messages):
    """Ends the run unless both sides make of every message what upb does."""
    from google.protobuf import json_format

    for side, program in programs.items():
        with tempfile.TemporaryDirectory() as outputs:
            run(program, "check", inputs, outputs)
            for name, message in all_messages.items():
                for suffix in ["bin", "fromjson"]:
                    found = type(message).FromString(Path(outputs, f"{name}.{suffix}").read_bytes())
                    if found != message:
                        sys.exit(f"{side} makes another message of {name} ({suffix})")
                text = Path(outputs, f"{name}.json").read_text()
                if json_format.Parse(text, type(message)()) != message:
                    sys.exit(f"{side} writes other JSON for {name}")


def read_all(message):
    """Reads every field that is set; answers with nothing."""
    for field, value in message.ListFields():
        if field.message_type is None:
            if field.is_repeated:
                for _ in value:
                    pass
        elif field.message_type.GetOptions().map_entry:
            for key in value:
                inner = value[key]
                if field.message_type.fields_by_name["value"].message_type is not None:
                    read_all(inner)
        elif field.is_repeated:
            for element in value:
                read_all(element)
        else:
            read_all(value)


def time_upb(all_messages, milliseconds):
    """Nanoseconds of a parse followed by a read of every field."""
    result = {}
    for name, message in all_messages.items():
        kind, bytes_ = type(message), message.SerializeToString()
        count, took = 1, 0
        while took < milliseconds * 1_000_000:
            count = count if took == 0 else count * 4
            start = time.process_time_ns()
            for _ in range(count):
                read_all(kind.FromString(bytes_))
            took = max(time.process_time_ns() - start, 1)
        result[name] = took / count
    return result


def time_all(programs, inputs, all_messages, rounds, milliseconds):
    core = str(max(os.sched_getaffinity(0)))
    figures = {}
    upb = {name: [] for name in all_messages}
    for _ in range(rounds):
        for side, program in programs.items():
            out = run("taskset", "-c", core, program, "time", inputs, milliseconds).stdout
            for line in out.splitlines():
                name, operation, value = line.split()
                figures.setdefault((name, operation), {}).setdefault(side, []).append(float(value))
        for name, value in time_upb(all_messages, milliseconds).items():
            upb[name].append(value)
    for name, values in upb.items():
        figures[name, "decode"]["upb+read"] = values
    return figures


def counters(program, inputs, name, operation, runs):
    """Instructions and allocations of a whole program that runs an operation so often."""
    command = [program, "run", inputs, name, operation, runs]
    # Swift seeds its hashes anew in each process, and where keys collide counts differ.
    same = {**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"}
    preload = {**same, "LD_PRELOAD": str(WORK / "mallocs.so")}
    mallocs = run(*command, env=preload).stderr.split("mallocs ")[1].split()[0]
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    said = run(*valgrind, *command, env=same).stderr
    return int(said.split("Collected : ")[1].split()[0]), int(mallocs)


def count(program, inputs, name, operation):
    """Instructions and allocations of one run: what many runs take more than one, which has
    filled what is kept from then on."""
    runs = RUNS[name]
    if operation.startswith("json"):
        runs = max(runs // 10, 1)
    one, many = (counters(program, inputs, name, operation, n) for n in (1, 1 + runs))
    return {"instructions": round((many[0] - one[0]) / runs),
            "allocations": round((many[1] - one[1]) / runs, 2)}


def check_counts(programs, inputs, update):
    """Compares what is asked of processor and allocator with what was committed."""
    found = {
        f"{name} {operation}": count(programs["ours"], inputs, name, operation)
        for name in RUNS for operation in OPERATIONS
    }
    for key, wanted in EXACT.items():
        if found[key]["allocations"] != wanted:
            sys.exit(f"{key}: {found[key]['allocations']} allocations instead of {wanted}")
    if update:
        COUNTS.write_text(json.dumps(found, indent=2) + "\n")
        print(f"wrote {COUNTS.relative_to(ROOT)}")
        return
    committed = json.loads(COUNTS.read_text())
    bad = 0
    for key, counts in committed.items():
        for what, limit in counts.items():
            value = found[key][what]
            allowed = limit * (1 + TOLERANCE) + (0.5 if what == "allocations" else 0)
            mark = "" if value <= allowed else "   TOO MANY"
            bad += value > allowed
            print(f"{key:24} {what:12} {value:14,.2f}   committed {limit:14,.2f}{mark}")
    if bad:
        sys.exit(f"{bad} counts are higher than committed (Scripts/bench/codec --update writes them anew)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three short rounds, nothing counted")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--check", action="store_true", help="only counts, against the committed ones")
    parser.add_argument("--update", action="store_true", help="only counts; commit them")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as home:
        inputs = Path(home)
        programs, all_messages = prepare(inputs)
        check(programs, inputs, all_messages)
        if arguments.check or arguments.update:
            return check_counts(programs, inputs, arguments.update)
        rounds = arguments.rounds or (3 if arguments.quick else 7)
        figures = time_all(programs, inputs, all_messages, rounds, 10 if arguments.quick else 60)
        counts = {}
        if not arguments.quick:
            counts = {
                (name, operation, side): count(program, inputs, name, operation)
                for name in all_messages for operation in OPERATIONS
                for side, program in programs.items()
            }
    report(all_messages, figures, counts, arguments.json)


def report(all_messages, figures, counts, path):
    print(f"{'message':11}{'bytes':>9} {'operation':12}{'ours ns':>12}{'(range)':>24}{'C++ ns':>12}"
          f"{'ours/C++':>9}{'upb+read':>12}{'instr.':>12}{'C++':>12}{'allocs':>8}{'C++':>8}")
    rows = []
    for (name, operation), sides in figures.items():
        ours, cpp = statistics.median(sides["ours"]), statistics.median(sides["C++"])
        upb = statistics.median(sides["upb+read"]) if "upb+read" in sides else None
        counted = {side: counts.get((name, operation, side), {}) for side in ("ours", "C++")}
        rows.append({
            "message": name, "bytes": all_messages[name].ByteSize(), "operation": operation,
            "nanoseconds": {side: {"median": statistics.median(v), "all": v} for side, v in sides.items()},
            "ratio": ours / cpp, "counts": counted})

        def cell(side, what):
            value = counted[side].get(what)
            return "" if value is None else f"{value:,.0f}"

        spread = f"({min(sides['ours']):,.0f}–{max(sides['ours']):,.0f})"
        print(f"{name:11}{rows[-1]['bytes']:>9} {operation:12}{ours:>12,.0f}{spread:>24}{cpp:>12,.0f}"
              f"{ours / cpp:>9.2f}{'' if upb is None else f'{upb:,.0f}':>12}"
              f"{cell('ours', 'instructions'):>12}{cell('C++', 'instructions'):>12}"
              f"{cell('ours', 'allocations'):>8}{cell('C++', 'allocations'):>8}")
    if path:
        path.write_text(json.dumps({"machine": platform.processor() or platform.machine(), "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
