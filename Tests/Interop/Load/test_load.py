"""Load on the release build: nothing fails, nothing grows.

What a call costs is measured by Scripts/bench; here are only things that hold
on any machine.
"""

import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import harness
import stubs
from harness import LIMIT
import interop_pb2
import interop_pb2_grpc

CALLS = 1_000_000
MEBIBYTE = 1 << 20


def resident(pid: int) -> int:
    """Bytes of memory in use."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class HealthChecks(unittest.TestCase):
    def setUp(self):
        if shutil.which("h2load") is None:
            self.skipTest("no h2load (nghttp2-client)")
        self.server = harness.Server()
        self.addCleanup(self.server.close)
        body = tempfile.NamedTemporaryFile(suffix=".grpc")
        self.addCleanup(body.close)
        # One gRPC frame around an empty HealthCheckRequest.
        body.write(bytes(5))
        body.flush()
        self.body = body.name

    def load(self, calls: int) -> str:
        ended = subprocess.run([
            "h2load", "-n", str(calls), "-c", "10", "-m", "100", "-d", self.body,
            "-H", "content-type: application/grpc", "-H", "te: trailers",
            f"http://{self.server.address}/grpc.health.v1.Health/Check",
        ], capture_output=True, text=True, timeout=600)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn(f"{calls} succeeded, 0 failed, 0 errored, 0 timeout", ended.stdout)
        return ended.stdout

    def test_a_million_calls(self):
        pid = self.server.peer.process.pid
        # Pools and caches fill first.
        self.load(CALLS // 10)
        before, open_before, cpu_before = resident(pid), descriptors(pid), cpu_seconds(pid)
        said = self.load(CALLS)
        grown = resident(pid) - before
        cost = (cpu_seconds(pid) - cpu_before) / CALLS * 1e6
        rate = re.search(r"([\d.]+) req/s", said)[1]
        print(f"\n  load: {CALLS} calls, {rate} per second, {cost:.2f} µs of the server's CPU each; "
              f"memory grew by {grown / MEBIBYTE:.2f} MiB to {resident(pid) / MEBIBYTE:.1f}", flush=True)
        self.assertLess(grown, 2 * MEBIBYTE)
        self.assertLessEqual(descriptors(pid), open_before)


class StoppedReader(unittest.TestCase):
    """A gibibyte for somebody who does not read: it waits where it is."""

    def setUp(self):
        path = os.environ.get("VENCEJO_ECHO", "")
        if not Path(path).is_file():
            self.skipTest("no Swift side of interop.proto (VENCEJO_ECHO)")
        self.peer = harness.Peer([path, "serve", "127.0.0.1:0"])
        self.addCleanup(self.peer.stop)
        self.channel = harness.channel(self.peer.address)
        self.addCleanup(self.channel.close)
        self.echo = interop_pb2_grpc.EchoStub(self.channel)
        # One stream from end to end, so that every pool is as large as it gets.
        for _ in self.stream(64):
            pass

    def stream(self, mebibytes: int):
        return self.echo.ServerStream(interop_pb2.EchoRequest(
            response_count=mebibytes * 16, response_bytes=MEBIBYTE // 16), timeout=300)

    def test_the_server_does_not_grow(self):
        pid = self.peer.process.pid
        before = highest = resident(pid)
        over = threading.Event()

        def watch():
            nonlocal highest
            # A sampling interval; nothing waits for it.
            while not over.wait(0.005):
                highest = max(highest, resident(pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            answers = self.stream(1024)
            next(answers)
            # Nobody reads. Other calls go on meanwhile, and give the stream
            # every chance to pile up.
            for _ in range(2000):
                self.echo.Unary(interop_pb2.EchoRequest(payload=b"x"), timeout=LIMIT)
            count = 1 + sum(1 for _ in answers)
        finally:
            over.set()
            watcher.join()
        self.assertEqual(count, 1024 * 16)
        grown = highest - before
        print(f"\n  stopped reader: 1 GiB, the server grew by {grown / MEBIBYTE:.2f} MiB", flush=True)
        self.assertLess(grown, 2 * MEBIBYTE)


if __name__ == "__main__":
    unittest.main()
