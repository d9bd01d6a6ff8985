"""What Scripts/bench/calls does, once everything it needs is there.

Servers run on one core and the load on the other; what is told is the CPU time (user and system,
/proc/PID/stat) that a server spent for each call or message, the median of rounds in which all peers
take turns. Clients are measured the other way round, against the bare C server.
"""

import argparse
import json
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / ".build/bench/calls"
DEBIAN = Path("/usr/share/gocode")
SERVICE = "/vencejo.calls.v1.Load/"
TICK = os.sysconf("SC_CLK_TCK")
# What is counted in each work, and how much of it makes one round, whole and quick.
WORKS = {
    "unary 64 B": ("call", 300_000, 60_000),
    "unary 1 KiB": ("call", 200_000, 50_000),
    "unary 64 KiB": ("call", 20_000, 4_000),
    "server streaming 64 B": ("message", 1_000_000, 200_000),
    "client streaming 64 B": ("message", 1_000_000, 200_000),
    "ping-pong 64 B": ("message", 200_000, 50_000),
    "client unary 64 B": ("call", 100_000, 20_000),
}
# The peers that take so long that they get a share of the round only.
SLOW = {"grpcio": 20}
# Messages of one streaming call.
ITEMS = 1_000


def run(*command, **options):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
    return result.stdout


def build():
    """Builds all programs; answers with the servers' and the clients' commands by name."""
    WORK.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "grpc_tools.protoc", "-I", HERE, f"--python_out={WORK}",
        f"--grpc_python_out={WORK}", "calls.proto")
    plugin = shutil.which("grpc_cpp_plugin")
    run("protoc", "-I", HERE, f"--cpp_out={WORK}", f"--grpc_out={WORK}",
        f"--plugin=protoc-gen-grpc={plugin}", "calls.proto")
    libraries = run("pkg-config", "--cflags", "--libs", "grpc++", "protobuf").split()
    for program in ("server", "client"):
        run("g++", "-std=c++17", "-O2", "-o", WORK / f"cpp-{program}", HERE / f"calls/{program}.cc",
            WORK / "calls.pb.cc", WORK / "calls.grpc.pb.cc", f"-I{WORK}", *libraries)
    run("cc", "-O2", "-o", WORK / "ceiling", ROOT / "Scripts/bench/ceiling.c", "-lnghttp2")
    run("cc", "-O2", "-o", WORK / "load", HERE / "calls/load.c", "-lnghttp2")

    # A workspace of the old kind: Debian's libraries are no modules.
    space = WORK / "go"
    shutil.rmtree(space, ignore_errors=True)
    package = space / "src/vencejo/calls"
    package.mkdir(parents=True)
    run("protoc", "-I", HERE,
        f"--go_out=plugins=grpc,paths=source_relative,Mcalls.proto=vencejo/calls:{package}", "calls.proto")
    for program in ("server", "client"):
        shutil.copytree(HERE / "calls/go" / program, space / "src/vencejo" / program)
        run("go", "build", "-o", WORK / f"go-{program}", f"vencejo/{program}",
            env={**os.environ, "GO111MODULE": "off", "GOPATH": f"{space}:{DEBIAN}", "GOFLAGS": "",
                 "GOCACHE": str(WORK / "go-cache"), "GOTOOLCHAIN": "local"})

    # SwiftPM does not look for new files in a package it depends on until this one changes.
    (HERE / "Package.swift").touch()
    swift = ["swift", "build", "-c", "release", "--package-path", HERE, "--scratch-path",
             ROOT / ".build/bench/swift"]
    run(*swift, "--product", "call-bench")
    ours = Path(run(*swift, "--show-bin-path").strip()) / "call-bench"
    servers = {
        "bare C": [WORK / "ceiling", "PORT"],
        "Vencejo": [ours, "serve", "127.0.0.1:PORT"],
        "Vencejo, pool": [ours, "serve", "127.0.0.1:PORT", "--pool"],
        "gRPC C++": [WORK / "cpp-server", "PORT"],
        "grpc-go": [WORK / "go-server", "PORT"],
        "grpcio": [sys.executable, HERE / "calls/server.py", "PORT"],
    }
    clients = {
        "Vencejo": [ours, "call"], "gRPC C++": [WORK / "cpp-client"], "grpc-go": [WORK / "go-client"],
    }
    return servers, clients


def versions():
    package = lambda name: run("dpkg-query", "-W", "-f", "${Version}", name)
    import grpc

    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "machine": f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, "
                   f"Linux {platform.release()}",
        "nghttp2": package("libnghttp2-dev"), "gRPC C++": package("libgrpc++-dev"),
        "grpc-go": package("golang-google-grpc-dev"), "grpcio": grpc.__version__,
        "Swift": run("swift", "--version").splitlines()[0],
    }


class Server:
    """A peer on a core of its own."""

    def __init__(self, name, command, core):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        words = [str(word).replace("PORT", str(self.port)) for word in command]
        self.name = name
        self.process = subprocess.Popen(
            ["taskset", "-c", str(core), *words], stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(WORK), "GOMAXPROCS": "1"})
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"{name} does not listen")
                time.sleep(0.02)  # Between two looks.

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def stop(self):
        self.process.kill()
        self.process.wait()


def item(size):
    """An item whose encoding takes so many bytes, or a little more for the large ones."""
    import calls_pb2

    made = calls_pb2.Item(id="0123456789abcdef", at=1 << 20)
    made.body = bytes(max(0, size - len(made.SerializeToString()) - 2))
    while len(made.SerializeToString()) > size:
        made.body = made.body[:-1]
    return made


def prefixed(message):
    encoded = message.SerializeToString()
    return b"\0" + len(encoded).to_bytes(4, "big") + encoded


def check(server):
    """Ends the run unless the server does each work rightly for a client of another make."""
    import calls_pb2
    import calls_pb2_grpc
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = calls_pb2_grpc.LoadStub(channel)
        sent = [item(size) for size in (64, 1024, 65536)]
        for one in sent:
            if stub.Echo(one, timeout=20) != one:
                sys.exit(f"{server.name} echoes another item")
        if server.name == "bare C":
            return
        got = list(stub.Serve(calls_pb2.Wanted(count=30, size=40), timeout=20))
        if len(got) != 30 or any(len(one.body) != 40 or one.id != sent[0].id for one in got):
            sys.exit(f"{server.name} serves other items")
        if stub.Collect(iter(sent), timeout=20) != calls_pb2.Item(id=sent[2].id, at=3, body=sent[2].body):
            sys.exit(f"{server.name} collects other items")
        if list(stub.Chat(iter(sent), timeout=20)) != sent:
            sys.exit(f"{server.name} chats otherwise")


def h2load(server, method, body, calls, connections, streams, answer):
    """So many calls, each of which must be answered by so many bytes of DATA."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        out = run("taskset", "-c", "1", "h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-n{calls}",
                  "-H", "te: trailers", "-H", "content-type: application/grpc", "-d", file.name,
                  f"http://127.0.0.1:{server.port}{SERVICE}{method}")
    done = re.search(r"(\d+) succeeded", out)
    data = re.search(r"\((\d+)\) data", out)
    if not done or int(done[1]) != calls or int(data[1]) != calls * answer:
        sys.exit(f"{server.name}: h2load did not get what it should:\n{out}")


def do(server, work, count):
    """One round of a work; answers with how many calls or messages it was."""
    import calls_pb2

    if work.startswith("unary"):
        body = prefixed(item({"64 B": 64, "1 KiB": 1024, "64 KiB": 65536}[work[6:]]))
        h2load(server, "Echo", body, count, 10, 100 if len(body) < 60_000 else 10, len(body))
        return count
    message = prefixed(item(64))
    if work.startswith("server"):
        calls = max(count // ITEMS, 10)
        size = len(item(64).body)
        answers = sum(
            len(prefixed(calls_pb2.Item(id="0123456789abcdef", at=n | 1 << 20, body=bytes(size))))
            for n in range(ITEMS))
        wanted = prefixed(calls_pb2.Wanted(count=ITEMS, size=size))
        h2load(server, "Serve", wanted, calls, 10, 1, answers)
        return calls * ITEMS
    chats = work.startswith("ping-pong")
    calls = max(count // ITEMS, 10)
    with tempfile.NamedTemporaryFile() as file:
        file.write(message)
        file.flush()
        out = run("taskset", "-c", "1", WORK / "load", server.port,
                  SERVICE + ("Chat" if chats else "Collect"), "chat" if chats else "collect", calls, 10, 1,
                  ITEMS, file.name)
    succeeded, data = map(int, out.split())
    if succeeded != calls or chats and data != calls * ITEMS * len(message):
        sys.exit(f"{server.name}: {succeeded} of {calls} calls were right, {data} bytes came")
    return calls * ITEMS


def client_round(server, command, count):
    """CPU seconds of a client that makes so many unary calls."""
    before = os.times()
    out = run("taskset", "-c", "1", *command, f"127.0.0.1:{server.port}", count, 100, len(item(64).body),
              env={**os.environ, "GOMAXPROCS": "1"})
    after = os.times()
    if int(out) != count:
        sys.exit(f"{out.strip()} of {count} answers were right")
    return after.children_user + after.children_system - before.children_user - before.children_system


def measure(o):
    servers, clients = build()
    sys.path.insert(0, str(WORK))
    running = {name: Server(name, command, 0) for name, command in servers.items()}
    figures = {}
    try:
        for server in running.values():
            check(server)
        for work in o.only:
            unit, whole, quick = WORKS[work]
            count = quick if o.quick else whole
            turn = list(running.values())
            if work.startswith("client unary"):
                for _ in range(o.rounds):
                    for name, command in clients.items():
                        took = client_round(running["bare C"], command, count)
                        figures.setdefault(work, {}).setdefault(name, []).append(took / count * 1e6)
                continue
            if not work.startswith("unary"):
                turn = [server for server in turn if server.name != "bare C"]
            for server in turn:  # Once so that everything is warm.
                do(server, work, max(count // SLOW.get(server.name, 1) // 10, 10))
            for _ in range(o.rounds):
                for server in turn:
                    before = server.cpu()
                    done = do(server, work, count // SLOW.get(server.name, 1))
                    took = server.cpu() - before
                    figures.setdefault(work, {}).setdefault(server.name, []).append(took / done * 1e6)
    finally:
        for server in running.values():
            server.stop()
    return figures


def ratio(work, name):
    """What a peer's median is, beside the reference of its work."""
    reference = work.get("bare C") or work.get("Vencejo")
    return statistics.median(work[name]) / statistics.median(reference)


def table(figures):
    lines = []
    for work, peers in figures.items():
        unit = WORKS[work][0]
        beside = "bare C" if "bare C" in peers else "Vencejo"
        lines.append(f"{work}: µs of CPU a {unit}, median (lowest–highest), × {beside}")
        for name, values in peers.items():
            lines.append(f"  {name:14} {statistics.median(values):9.3f}  ({min(values):.3f}–{max(values):.3f})"
                         f"{ratio(peers, name):9.2f}")
    return "\n".join(lines)


def drawing(figures):
    """Bars of each work's medians, as long as their ratio to the shortest, in a logarithmic scale."""
    import math

    rows, y = [], 10
    for work, peers in figures.items():
        rows.append(f'<text x="10" y="{y + 14}" font-weight="bold">{work}</text>')
        y += 22
        least = min(statistics.median(values) for values in peers.values()) or 1e-9
        for name, values in peers.items():
            middle = statistics.median(values)
            width = 20 + 120 * math.log2(max(middle / least, 1))
            colour = "#2a6f97" if name.startswith("Vencejo") else "#a9a9a9"
            rows.append(f'<text x="130" y="{y + 12}" text-anchor="end">{name}</text>'
                        f'<rect x="140" y="{y}" width="{width:.0f}" height="15" fill="{colour}"/>'
                        f'<text x="{width + 146:.0f}" y="{y + 12}">{middle:.3g} µs</text>')
            y += 19
        y += 10
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="{y}" font-family="sans-serif" '
            f'font-size="12">{"".join(rows)}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description="Calls beside other stacks.")
    parser.add_argument("--quick", action="store_true", help="small rounds: two minutes")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(WORKS), metavar="WORK,…",
                        help="; ".join(WORKS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    o = parser.parse_args()
    o.rounds = o.rounds or (3 if o.quick else 5)
    if unknown := set(o.only) - set(WORKS):
        parser.error(f"no such work: {', '.join(sorted(unknown))}")
    if (os.cpu_count() or 1) < 2:
        sys.exit("this wants two cores: one for servers, one for the load")
    figures = measure(o)
    about = versions()
    print("\n".join(f"{name}: {value}" for name, value in about.items()))
    print(table(figures))
    if o.json:
        o.json.write_text(json.dumps({"about": about, "microseconds": figures}, indent=1) + "\n")
    if o.svg:
        o.svg.write_text(drawing(figures))


main()
