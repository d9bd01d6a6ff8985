"""gRPC's negative-http2-interop-test-descriptions.md: our client, servers that misbehave."""

import subprocess
import sys
import unittest
from pathlib import Path

import harness
from frameserver import FrameServer
from interop_programs import swift
from wire import message

SERVER = Path(__file__).resolve().parent / "negative_server.py"
# Our server's case by another name than the client's, where it has variants.
CASES = ["goaway", "rst_after_header", "rst_during_data", "rst_after_data", "ping", "max_streams",
         "data_frame_padding"]


class GoesAway(FrameServer):
    """The first connection takes no stream, and says so with the call's head or after its end."""

    def __init__(self, early: bool):
        self.early = early
        super().__init__()

    def opened(self, stream):
        if self.early and stream.connection.number == 0:
            stream.connection.goaway(0)

    def served(self, stream):
        if stream.connection.number == 0:
            return None if self.early else stream.connection.goaway(0)
        # 74922, what the client's four messages come to.
        stream.headers()
        stream.data_frames(message(b"\x08\xaa\xc9\x04"))
        stream.trailers()


class OpensLater(FrameServer):
    """Takes no stream at first, and one once the client knows that."""

    def began(self, connection):
        connection.settings(max_concurrent_streams=0)
        while connection.acknowledged == 0:
            connection.read()
        connection.settings(max_concurrent_streams=1)

    def opened(self, stream):
        if stream.connection.acknowledged == 0:
            self.faults.append("a stream beyond the limit")

    def served(self, stream):
        stream.headers()
        stream.data_frames(message(b""))
        stream.trailers()


class Negative(unittest.TestCase):
    def drive(self, case: str, variant: str = "", *more: str):
        peer = harness.Peer(
            [sys.executable, str(SERVER), "--port=0", f"--test_case={variant or case}", *more])
        try:
            ended = subprocess.run(
                [swift("client"), "--server_host=127.0.0.1", f"--test_case={case}",
                 f"--server_port={peer.address.rsplit(':', 1)[1]}"],
                capture_output=True, text=True, timeout=60)
        finally:
            code = peer.stop()
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(code, 0, peer.errors())

    def test_goaway_while_the_call_is_under_way(self):
        self.drive("goaway", "goaway_first")

    def test_a_limit_of_streams_that_rises(self):
        """RFC 9113, section 6.5.2: 0 holds calls until the next SETTINGS."""
        server = OpensLater()
        ended = subprocess.run(
            [swift("client"), "--server_host=127.0.0.1", "--test_case=empty_unary",
             f"--server_port={server.port}"], capture_output=True, text=True, timeout=60)
        server.close()
        self.assertEqual((ended.returncode, server.faults), (0, []), ended.stderr)

    def test_streams_above_a_goaway_are_made_again(self):
        """PROTOCOL-HTTP2, "GOAWAY Frame", and gRFC A6: calls of streams too, with what was sent."""
        for early in (True, False):
            server = GoesAway(early)
            ended = subprocess.run(
                [swift("client"), "--server_host=127.0.0.1", "--test_case=client_streaming",
                 f"--server_port={server.port}"], capture_output=True, text=True, timeout=60)
            server.close()
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(len(server.connections), 2)

    def test_short_response(self):
        """The descriptions speak of 1024 bytes."""
        self.drive("ping", "ping", "--response_size=1024")


for _case in CASES:
    setattr(Negative, f"test_{_case}", lambda self, case=_case: self.drive(case))


if __name__ == "__main__":
    unittest.main()
