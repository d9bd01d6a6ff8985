"""Much for long: many calls at once, many connections one after the other, a mixture for
minutes. Afterwards memory and descriptors are what they were.

The long form is for VENCEJO_FULL=1; the short one finds what leaks at every turn.
Figures are printed.
"""

import os
import re
import resource
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import harness
import interop_pb2
import interop_pb2_grpc
import wire

FULL = os.environ.get("VENCEJO_FULL") == "1"
CALLS = int(os.environ.get("VENCEJO_SOAK_CALLS", 50_000 if FULL else 10_000))
CONNECTIONS = int(os.environ.get("VENCEJO_SOAK_CONNECTIONS", 100_000 if FULL else 4_000))
SECONDS = int(os.environ.get("VENCEJO_SOAK_SECONDS", 1_200 if FULL else 10))
# Of a process that has seen all of it once already: pools and caches are full, and what
# the allocator keeps between bursts varies by pages, not by what leaks.
SLACK = 3 << 20
ROUNDS = 1 if FULL else 3
PATH = "/vencejo.interop.v1.Echo/"


def resident(pid: int) -> int:
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def named(pid: int) -> dict:
    """What the descriptors are."""
    found = {}
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            kind = os.readlink(f"/proc/{pid}/fd/{number}")
            clock = re.search(r"clockid: (\d+)", Path(f"/proc/{pid}/fdinfo/{number}").read_text())
        except OSError:
            continue  # Closed meanwhile.
        found[number] = kind + (f" clock {clock[1]}" if clock else "")
    return found


def settled(pid: int, wanted: int | None = None) -> int:
    """Descriptors, once they are down to what is wanted, or have stopped moving."""
    last, same, end = descriptors(pid), 0, time.monotonic() + 60
    while time.monotonic() < end and (last > wanted if wanted else same < 50):
        time.sleep(0.02)  # a sampling interval
        now = descriptors(pid)
        same, last = (same + 1, last) if now == last else (0, now)
    return last


def at_rest(pid: int) -> int:
    """Memory in use, once handlers have wound up and it has stopped moving."""
    last, same, end = resident(pid), 0, time.monotonic() + 60
    while same < 50 and time.monotonic() < end:
        time.sleep(0.02)  # a sampling interval
        now = resident(pid)
        same, last = (same + 1, last) if now == last else (0, now)
    return last


def setUpModule():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def until(link, wanted: bytes) -> None:
    """Reads until the bytes have come."""
    buffered = b""
    while wanted not in buffered:
        chunk = link.recv(65536)
        if not chunk:
            raise AssertionError("the server closed a connection")
        buffered = buffered[-len(wanted):] + chunk


class Soak(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = os.environ.get("VENCEJO_ECHO", "")
        if not Path(program).is_file():
            raise unittest.SkipTest("no Swift side of interop.proto (VENCEJO_ECHO)")
        cls.program = program
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.peer = harness.Peer([program, "serve", "127.0.0.1:0"])
        cls.addClassCleanup(cls.peer.stop)
        cls.pid = cls.peer.process.pid
        host, port = cls.peer.address.rsplit(":", 1)
        cls.address = (host, int(port))

    def returns_to_its_floor(self, name: str, body) -> None:
        """The body again and again: once the heap is as large as one needs, nothing is added."""
        for _ in range(2):
            body()
        open_before, floor = settled(self.pid), at_rest(self.pid)
        peak = max(body() or 0 for _ in range(ROUNDS))
        open_after = settled(self.pid, open_before)
        grown = at_rest(self.pid) - floor
        print(f"\n  soak: {name}: the server has {resident(self.pid) / 1024:.0f} KiB, grown by "
              f"{grown / 1024:.0f} KiB in {ROUNDS} rounds (at most {peak / 1024:.0f} KiB meanwhile), and "
              f"{open_after} descriptors, before {open_before}", flush=True)
        self.assertLessEqual(open_after, open_before)
        self.assertLess(grown / ROUNDS, SLACK)
        # And it still answers.
        self.connect().close()

    def connect(self) -> socket.socket:
        link = socket.create_connection(self.address, timeout=60)
        link.sendall(wire.PREFACE + wire.SETTINGS + wire.frame(wire.SETTINGS_FRAME, wire.ACK, 0, b"")
                     + wire.frame(wire.PING, 0, 0, b"vencejo!"))
        until(link, wire.frame(wire.PING, wire.ACK, 0, b"vencejo!"))
        return link

    def test_many_calls_at_once(self):
        head = wire.request_fields(PATH + "Bidirectional")

        def body():
            links, left = [], CALLS
            while left > 0:
                link, count = self.connect(), min(left, 900)
                links.append((link, count))
                link.sendall(b"".join(
                    wire.frame(wire.HEADERS, wire.END_HEADERS, 1 + 2 * i, head) for i in range(count)))
                left -= count
            for link, _ in links:
                link.sendall(wire.frame(wire.PING, 0, 0, b"opened!!"))
                until(link, wire.frame(wire.PING, wire.ACK, 0, b"opened!!"))
            peak = resident(self.pid)
            # A third is reset, a third ends, a third loses its connection.
            for index, (link, count) in enumerate(links):
                if index % 3 == 0:
                    link.sendall(b"".join(
                        wire.frame(wire.RST_STREAM, 0, 1 + 2 * i, (8).to_bytes(4, "big"))
                        for i in range(count)))
                elif index % 3 == 1:
                    link.sendall(b"".join(
                        wire.frame(wire.DATA, wire.END_STREAM, 1 + 2 * i, b"") for i in range(count)))
            for link, _ in links:
                link.close()
            return peak

        self.returns_to_its_floor(f"{CALLS} calls at once", body)

    def test_many_connections(self):
        call = wire.call(1, PATH + "Unary", b"\x0a\x04hola")

        def body():
            for number in range(CONNECTIONS // 2):
                link = socket.create_connection(self.address, timeout=60)
                # Gone with a reset: the other way 28,000 ports would be used up in a second.
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                link.sendall(wire.PREFACE + wire.SETTINGS)
                if number % 4:
                    link.sendall(wire.frame(wire.SETTINGS_FRAME, wire.ACK, 0, b"") + call)
                    until(link, b"hola")
                link.close()

        self.returns_to_its_floor(f"{CONNECTIONS} connections", body)

    def test_a_mixture_of_calls(self):
        def load(seconds):
            return subprocess.run(
                [self.program, "load", self.peer.address, "--seconds", str(seconds), "--workers", "100"],
                capture_output=True, text=True, timeout=seconds + 120)

        # Also whatever waiting takes for the first time: timers have a descriptor.
        with harness.channel(self.peer.address) as channel:
            echo = interop_pb2_grpc.EchoStub(channel)
            echo.Unary(interop_pb2.EchoRequest(delay_milliseconds=1), timeout=60)
            echo.GetHold(interop_pb2.GetHoldRequest(key="none", wait_milliseconds=1), timeout=60)
        warm = load(5)
        self.assertEqual(warm.returncode, 0, warm.stdout + warm.stderr)
        open_before, floor = settled(self.pid), at_rest(self.pid)
        known = named(self.pid)
        running = subprocess.Popen(
            [self.program, "load", self.peer.address, "--seconds", str(SECONDS), "--workers", "100"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(running.stdout.close)
        # Meanwhile: a cancelled call's handler is cancelled, every time.
        with harness.channel(self.peer.address) as channel:
            echo = interop_pb2_grpc.EchoStub(channel)
            for number in range(100):
                key = f"soak-{number}"
                call = echo.Hold(interop_pb2.HoldRequest(key=key), timeout=60)
                next(call)
                call.cancel()
                held = echo.GetHold(
                    interop_pb2.GetHoldRequest(key=key, wait_milliseconds=30_000), timeout=60)
                self.assertTrue(held.cancelled, number)
        said, _ = running.communicate(timeout=SECONDS + 120)
        self.assertEqual(running.returncode, 0, said)
        open_after = settled(self.pid, open_before)
        grown = at_rest(self.pid) - floor
        print(f"\n  soak: {SECONDS} s of mixed calls: {said.strip()}; the server has "
              f"{resident(self.pid) / 1024:.0f} KiB, grown by {grown / 1024:.0f} KiB, and {open_after} "
              f"descriptors, before {open_before}", flush=True)
        more = {number: kind for number, kind in named(self.pid).items() if number not in known}
        self.assertLessEqual(open_after, open_before, more)
        self.assertLess(grown, 4 * SLACK)


if __name__ == "__main__":
    unittest.main()
