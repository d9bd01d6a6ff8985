"""What a call allocates: a count that no other program on the machine changes."""

import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import harness
from harness import LIMIT

CALLS = 20_000
# Of one grpc.health.v1.Health/Check, in the release build. Lower them when calls get cheaper.
PLAIN = 9
METRICS = 12
TRACED_AND_LOGGED = 31


class Allocations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None or shutil.which("h2load") is None:
            raise unittest.SkipTest("no C compiler or no h2load (nghttp2-client)")
        cls.folder = tempfile.mkdtemp(prefix="vencejo-allocations-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.library = f"{cls.folder}/allocations.so"
        subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", "-o", cls.library,
             str(Path(__file__).parent / "allocations.c")], check=True, timeout=60)
        cls.body = f"{cls.folder}/body"
        # One gRPC frame around an empty HealthCheckRequest.
        Path(cls.body).write_bytes(bytes(5))

    def count(self, peer, told: int) -> int:
        peer.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            found = re.findall(r"allocations: (\d+)", peer.errors())
            if len(found) > told:
                return int(found[-1])
            time.sleep(0.01)  # Between two looks; the deadline ends it.
        raise AssertionError("no count came")

    def load(self, peer, calls: int) -> None:
        ended = subprocess.run(
            ["h2load", "-t1", "-c1", "-m10", f"-n{calls}", "-d", self.body, "-H", "te: trailers",
             "-H", "content-type: application/grpc",
             f"http://{peer.address}/grpc.health.v1.Health/Check"],
            capture_output=True, text=True, timeout=120)
        self.assertIn(f"{calls} succeeded", ended.stdout)

    def per_call(self, *arguments: str) -> float:
        with tempfile.TemporaryDirectory() as data:
            peer = harness.Peer(
                [harness.program(), "serve", "--listen", "127.0.0.1:0", "--data", data, *arguments],
                env={"LD_PRELOAD": self.library})
            self.addCleanup(peer.stop)
            self.load(peer, 2_000)
            before = self.count(peer, 0)
            self.load(peer, CALLS)
            found = (self.count(peer, 1) - before) / CALLS
            peer.stop()
        print(f"  {found:.2f} allocations for each call {' '.join(arguments)}")
        return found

    def test_what_is_off_costs_nothing(self):
        self.assertLess(self.per_call(), PLAIN + 0.5)

    def test_what_is_on_costs_little(self):
        self.assertLess(self.per_call("--metrics", "127.0.0.1:0"), METRICS + 0.5)
        self.assertLess(
            self.per_call("--otlp", "127.0.0.1:1", "--log-calls", "--log-level", "error",
                          "--trace-sampling", "0"), TRACED_AND_LOGGED + 0.5)


if __name__ == "__main__":
    unittest.main()
