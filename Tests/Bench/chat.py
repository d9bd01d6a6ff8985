"""What the messenger costs: sending that lasts, telling many, a large database. Scripts/bench/chat
runs it.

Servers are a release build on loopback and on a folder of their own below --folder, which has to
be on the disk to be measured. CPU is utime + stime of /proc/PID/stat. Latencies are those of a
client in C on the same machine, which shares its cores.
"""

import argparse
import os
import re
import shutil
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile

from chat_fixture import CHANNEL, GROUP, Fixture

BENCH = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(BENCH))

TICK = os.sysconf("SC_CLK_TCK")
PROGRAM = os.environ.get("VENCEJO_PROGRAM", os.path.join(TOP, ".build", "release", "vencejo"))


def cpu(pid):
    """(user, system) seconds."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) / TICK, int(fields[12]) / TICK


def anonymous(pid):
    """MiB that are the process's own: what it maps of files may go any time."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"RssAnon:\s+(\d+) kB", f.read())[1]) / 1024


def compile_c(home, name, *libraries):
    path = os.path.join(home, name)
    options = ["-shared", "-fPIC"] if name == "fsyncs" else []
    subprocess.run(["cc", "-O2", *options, "-o", path, os.path.join(BENCH, f"{name}.c"), *libraries],
                   check=True)
    return path


class Server:
    def __init__(self, data, *arguments, preload=None, counts=None):
        environment = dict(os.environ)
        if preload:
            environment.update(LD_PRELOAD=preload, VENCEJO_FSYNCS=counts)
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", data, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            sys.exit(f"{PROGRAM} does not serve")
        self.port = line.strip().rsplit(":", 1)[1]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


class Load:
    """The client in C, which waits before and after its work."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.expect("ready")

    def expect(self, word):
        line = self.process.stdout.readline().strip()
        if line != word:
            sys.exit(f"the load said '{line}', not '{word}'")

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def figures(self):
        """(count, seconds, median, 99th percentile, most) with latencies in ms"""
        values = self.process.stdout.readline().split()
        if len(values) != 5:
            sys.exit("the load failed")
        self.expect("end")
        return int(values[0]), *map(float, values[1:])

    def end(self):
        self.go()
        self.process.wait(60)


def fresh(folder):
    """A folder with the tables of this version."""
    data = tempfile.mkdtemp(prefix="chat-bench-", dir=folder)
    Server(data).stop()
    return data


def write_lines(path, lines):
    with open(path, "w") as f:
        f.writelines(f"{line}\n" for line in lines)
    return path


def send(o, home, load):
    """100 senders in groups of ten; the bare loop has transactions of the same size."""
    fsyncs, insert = compile_c(home, "fsyncs"), compile_c(home, "insert", "-lsqlite3")
    counts = os.path.join(home, "count")
    ours, theirs, ratios, batches = [], [], [], []
    for _ in range(o.rounds):
        data = fresh(o.folder)
        fixture = Fixture(data)
        users = [fixture.user(f"u{index}") for index in range(100)]
        groups = [fixture.chat(GROUP, f"g{index}", [u for u, _ in users[10 * index:10 * index + 10]])
                  for index in range(10)]
        fixture.close()
        bare = data + "-bare"
        shutil.copytree(data, bare)
        tokens = write_lines(os.path.join(home, "tokens"), [token for _, token in users])
        chats = write_lines(os.path.join(home, "chats"), [groups[i // 10][1] for i in range(100)])

        def state():
            database = sqlite3.connect(f"{data}/vencejo.sqlite")
            try:
                return database.execute(
                    "SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM event)").fetchone()
            finally:
                database.close()

        server = Server(data, preload=fsyncs, counts=counts)
        client = Load(load, "senders", server.port, tokens, chats, 100, o.messages)
        before, synced, used = state(), struct.unpack("l", open(counts, "rb").read())[0], cpu(server.pid)
        client.go()
        count, seconds, median, p99, most = client.figures()
        used = [b - a for a, b in zip(used, cpu(server.pid))]
        synced = struct.unpack("l", open(counts, "rb").read())[0] - synced
        after = state()
        client.end()
        server.stop()
        messages, events = (b - a for a, b in zip(before, after))
        assert messages == o.messages, messages
        batch, each = max(1, round(messages / synced)), max(1, round(events / messages))
        said = subprocess.run([insert, f"{bare}/vencejo.sqlite", str(groups[0][0]), str(users[0][0]),
                               str(o.messages), str(batch), str(each)],
                              capture_output=True, text=True, check=True).stdout.split()
        ours.append(count / seconds)
        theirs.append(int(said[0]) / float(said[1]))
        ratios.append(ours[-1] / theirs[-1])
        batches.append(batch)
        print(f"server {ours[-1]:8.0f}/s  (p50 {median:.1f} ms, p99 {p99:.1f} ms, {batch} to a "
              f"commit, {each} events each, {sum(used) / count * 1e6:.0f} µs of CPU)   "
              f"bare loop {theirs[-1]:8.0f}/s  ({float(said[2]) / int(said[0]) * 1e6:.0f} µs of CPU)   "
              f"ratio {ratios[-1]:.2f}", flush=True)
        shutil.rmtree(data)
        shutil.rmtree(bare)
    print(f"median ratio {statistics.median(ratios):.2f}  (server {statistics.median(ours):.0f}/s, "
          f"bare loop {statistics.median(theirs):.0f}/s)")


def fanout(o, home, load):
    most = max(o.counts)
    data = fresh(o.folder)
    fixture = Fixture(data)
    users = [fixture.user(f"u{index}") for index in range(most + 1)]
    chats = {count: fixture.chat(CHANNEL, f"c{count}", [u for u, _ in users[:count + 1]])[1]
             for count in o.counts}
    fixture.close()
    tokens = write_lines(os.path.join(home, "tokens"), [token for _, token in users])
    for count in o.counts:
        server = Server(data)
        messages = max(10, min(1000, 400_000 // count))
        connections = min(count, o.connections)
        client = Load(load, "subscribers", server.port, tokens, chats[count], count, connections,
                      messages)
        used = cpu(server.pid)
        client.go()
        delivered, seconds, median, p99, longest = client.figures()
        user, system = (b - a for a, b in zip(used, cpu(server.pid)))
        client.end()
        print(f"{count:6} subscribers on {connections:4} connections: "
              f"{(user + system) / delivered * 1e6:7.2f} µs of CPU a delivery "
              f"({user / delivered * 1e6:.2f} user, {system / delivered * 1e6:.2f} system)   "
              f"latency p50 {median:7.2f} ms  p99 {p99:7.2f} ms  most {longest:7.2f} ms   "
              f"{anonymous(server.pid):.0f} MiB", flush=True)
        server.stop()
    shutil.rmtree(data)


def laggards(o, home, load):
    """Subscribers of one chat who resume at once from the same old token."""
    data = fresh(o.folder)
    fixture = Fixture(data)
    users = [fixture.user(f"u{index}") for index in range(o.laggards + 1)]
    chat = fixture.chat(CHANNEL, "c", [user for user, _ in users])[1]
    fixture.close()
    tokens = write_lines(os.path.join(home, "tokens"), [token for _, token in users])
    server = Server(data)
    client = Load(load, "laggards", server.port, tokens, chat, o.laggards,
                  min(o.laggards, o.connections), o.messages)
    used = cpu(server.pid)
    client.go()
    delivered, seconds, median, p99, longest = client.figures()
    user, system = (b - a for a, b in zip(used, cpu(server.pid)))
    client.end()
    print(f"{o.laggards} subscribers resume {o.messages} messages behind: "
          f"{(user + system) / delivered * 1e6:.2f} µs of CPU a delivery "
          f"({user / delivered * 1e6:.2f} user, {system / delivered * 1e6:.2f} system), "
          f"{seconds:.2f} s in all", flush=True)
    server.stop()
    shutil.rmtree(data)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["send", "fanout", "laggards", "million"])
    p.add_argument("--messages", type=int)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--counts", default="1,100,1500,10000",
                   type=lambda text: [int(part) for part in text.split(",")])
    p.add_argument("--connections", type=int, default=100)
    p.add_argument("--laggards", type=int, default=1000)
    p.add_argument("--chats", type=int, default=10_000)
    p.add_argument("--folder", default=os.path.join(TOP, ".build"))
    o = p.parse_args()
    if not os.path.exists(PROGRAM):
        sys.exit(f"no {PROGRAM}: swift build -c release --product vencejo")
    with tempfile.TemporaryDirectory() as home:
        load = compile_c(home, "chat_load", "-lnghttp2")
        if o.what == "send":
            o.messages = o.messages or 20_000
            send(o, home, load)
        elif o.what == "fanout":
            fanout(o, home, load)
        elif o.what == "laggards":
            o.messages = o.messages or 200
            laggards(o, home, load)
        else:
            import chat_million
            chat_million.run(o, home, sys.modules["__main__"])


main()
