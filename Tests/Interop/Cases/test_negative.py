"""gRPC's negative-http2-interop-test-descriptions.md: our client, servers that misbehave."""

import subprocess
import sys
import unittest
from pathlib import Path

import harness
from interop_programs import swift

SERVER = Path(__file__).resolve().parent / "negative_server.py"
# Our server's case by another name than the client's, where it has variants.
CASES = ["goaway", "rst_after_header", "rst_during_data", "rst_after_data", "ping", "max_streams",
         "data_frame_padding"]


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

    def test_short_response(self):
        """The descriptions speak of 1024 bytes."""
        self.drive("ping", "ping", "--response_size=1024")


for _case in CASES:
    setattr(Negative, f"test_{_case}", lambda self, case=_case: self.drive(case))


if __name__ == "__main__":
    unittest.main()
