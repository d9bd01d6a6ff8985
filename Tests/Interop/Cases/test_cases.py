"""The cases of gRPC's interop-test-descriptions.md: case × peer × direction × transport.

Each is one run of a client program against a server program, by the flags that
the descriptions name. What a peer's library cannot tell or do is listed below,
with the reason: everything else must pass.
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import certificates
import cpp
import gopeers
import harness
import stubs
from interop_programs import swift

HERE = Path(__file__).resolve().parent

CASES = [
    "empty_unary", "large_unary", "client_compressed_unary", "server_compressed_unary",
    "client_streaming", "client_compressed_streaming", "server_streaming",
    "server_compressed_streaming", "ping_pong", "empty_stream", "custom_metadata",
    "status_code_and_message", "special_status_message", "unimplemented_method",
    "unimplemented_service", "cancel_after_begin", "cancel_after_first_response",
    "timeout_on_sleeping_server", "rpc_soak", "channel_soak",
]

# (client, server) pairs; `swift` is ours. The peers among themselves are not our business.
PAIRS = [("swift", "swift")] + [
    pair for peer in ("go", "cpp", "python", "aio", "grpclib")
    for pair in ((peer, "swift"), ("swift", peer))]

COMPRESSED = {case for case in CASES if "compressed" in case}

# Clients that learn of no message whether it came compressed.
CLIENT_CANNOT = {
    "python": {"server_compressed_unary", "server_compressed_streaming",
               # One setting for all messages of a stream.
               "client_compressed_streaming"},
    "go": {"server_compressed_unary", "server_compressed_streaming", "client_compressed_streaming"},
    "aio": {"server_compressed_unary", "server_compressed_streaming",
            "client_compressed_streaming",
            # A deadline that passes while it writes is INTERNAL to it.
            "timeout_on_sleeping_server"},
    "grpclib": COMPRESSED,
}
# Servers that learn of no message whether it came compressed, or cannot choose.
SERVER_CANNOT = {
    "python": {"client_compressed_unary", "client_compressed_streaming"},
    "go": {"client_compressed_unary", "client_compressed_streaming",
           "server_compressed_unary", "server_compressed_streaming"},
    "aio": COMPRESSED,
    "grpclib": COMPRESSED,
}


def program(peer: str, side: str) -> list[str]:
    match peer:
        case "swift": return [swift(side)]
        case "go": return [gopeers.built(side)]
        case "cpp": return [cpp.built(f"testing_{side}")]
        case "python": return [sys.executable, str(HERE / f"{side}.py")]
        case "aio" | "grpclib": return [sys.executable, str(HERE / f"{peer}_{side}.py")]
    raise ValueError(peer)


def made() -> certificates.Certificates:
    all = certificates.made()
    if not Path(all.pem("testing")).exists():
        all.leaf("testing", "root", "DNS:*.test.google.fr")
    return all


# Python's programs find the stubs that this run generated.
ENVIRONMENT = {"PYTHONPATH": stubs.folder, "GRPC_VERBOSITY": "ERROR"}
_servers = {}


def server(peer: str, tls: bool) -> harness.Peer:
    """One server process for all cases of a peer and a transport."""
    if (peer, tls) not in _servers:
        command = program(peer, "server") + ["--port=0", f"--use_tls={str(tls).lower()}"]
        if peer == "swift":
            command += ["--host=127.0.0.1"]
        if tls:
            command += [f"--tls_cert_file={made().pem('testing')}",
                        f"--tls_key_file={made().key('testing')}"]
        _servers[peer, tls] = harness.Peer(command, ENVIRONMENT)
    return _servers[peer, tls]


def tearDownModule():
    for one in _servers.values():
        one.stop()
    _servers.clear()


def drive(test, client: str, port: int, case: str, tls: bool) -> None:
    command = program(client, "client") + [
        "--server_host=127.0.0.1", f"--server_port={port}", f"--test_case={case}"]
    if tls:
        command += ["--use_tls=true", "--use_test_ca=true", f"--ca_file={made().pem('root')}",
                    "--server_host_override=foo.test.google.fr"]
    else:
        command += ["--use_tls=false"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60,
                               env={**os.environ, **ENVIRONMENT})
    except subprocess.TimeoutExpired as error:
        test.fail(f"{command} hangs; so far: {error.stdout} {error.stderr}")
    test.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)


class Interop(unittest.TestCase):
    def test_official_certificates(self):
        """Without files, TLS uses what the descriptions name, from Debian's grpc-go."""
        if not gopeers.DEBIAN.is_dir():
            self.skipTest("no golang-google-grpc-dev")
        peer = harness.Peer([swift("server"), "--port=0", "--host=127.0.0.1", "--use_tls"])
        self.addCleanup(peer.stop)
        ended = subprocess.run(
            [swift("client"), "--server_host=127.0.0.1", "--use_tls=true", "--use_test_ca=true",
             f"--server_port={peer.address.rsplit(':')[-1]}", "--test_case=large_unary",
             "--server_host_override=foo.test.google.fr"],
            capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_unknown_case_and_flag(self):
        for arguments in (["--test_case=nonsense"], ["--nonsense=1"]):
            ended = subprocess.run([swift("client"), *arguments], capture_output=True, text=True,
                                   timeout=60)
            self.assertEqual(ended.returncode, 64, ended.stderr)

    def test_server_on_both_loopback_addresses(self):
        with harness.socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        peer = harness.Peer([swift("server"), f"--port={port}"])
        self.addCleanup(peer.stop)
        hosts = ["127.0.0.1", "localhost"]
        if Path("/proc/net/if_inet6").exists() and "lo" in Path("/proc/net/if_inet6").read_text():
            hosts.append("::1")
        for host in hosts:
            ended = subprocess.run(
                [swift("client"), f"--server_host={host}", f"--server_port={port}",
                 "--test_case=empty_unary"], capture_output=True, text=True, timeout=60)
            self.assertEqual(ended.returncode, 0, f"{host}: {ended.stderr}")


def _test(client: str, peer: str, case: str, tls: bool):
    def run(self):
        port = int(server(peer, tls).address.rsplit(":", 1)[1])
        drive(self, client, port, case, tls)
    return run


for _client, _server in PAIRS:
    for _case in CASES:
        if _case in CLIENT_CANNOT.get(_client, ()) or _case in SERVER_CANNOT.get(_server, ()):
            continue
        for _tls in (False, True):
            _name = f"test_{_client}_client_{_server}_server_{'tls' if _tls else 'plain'}_{_case}"
            setattr(Interop, _name, _test(_client, _server, _case, _tls))


if __name__ == "__main__":
    unittest.main()
