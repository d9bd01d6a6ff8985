"""HTTP/2 conformance: our port, plain and with TLS, beside nghttp2's own server.

Each case is tried against both. Ours may fail where nghttp2's does, and nowhere else.
"""

import shutil
import socket
import tempfile
import time
import unittest
from pathlib import Path

import certificates
import harness
from h2 import CASES, Failed, Link
import errors
import generic
import messages
from interop_programs import swift


class Nghttpd:
    """nghttp2's server with one page."""

    def __init__(self, tls: bool):
        self.folder = tempfile.mkdtemp(prefix="vencejo-nghttpd-")
        (Path(self.folder) / "index.html").write_text("a page of some bytes\n" * 4)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = probe.getsockname()
        command = ["nghttpd", "-a", "127.0.0.1", "-d", self.folder]
        if tls:
            made = certificates.made()
            command += [str(self.address[1]), made.key("server"), made.pem("server")]
        else:
            command += ["--no-tls", str(self.address[1])]
        self.process = harness.subprocess.Popen(command, stdout=-3, stderr=-3, stdin=-3)
        deadline = time.monotonic() + harness.LIMIT
        while True:
            try:
                socket.create_connection(self.address, timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)  # nghttpd does not say when it listens

    def stop(self):
        self.process.terminate()
        self.process.wait(harness.LIMIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def outcome(address, tls: bool, name: str) -> str | None:
    """Why the case fails; nil when it passes."""
    run, handshake = CASES[name]
    try:
        link = Link(address, tls, handshake)
    except (Failed, OSError) as error:
        return f"no connection: {error}"
    try:
        run(link)
    except Failed as error:
        return str(error)
    finally:
        link.close()
    return None


class Conformance(unittest.TestCase):
    maxDiff = None

    def check(self, tls: bool):
        if shutil.which("nghttpd") is None:
            self.skipTest("no nghttpd: install nghttp2-server")
        command = [swift("server"), "--port=0", "--host=127.0.0.1", f"--use_tls={str(tls).lower()}"]
        if tls:
            made = certificates.made()
            command += [f"--tls_cert_file={made.pem('server')}", f"--tls_key_file={made.key('server')}"]
        peer = harness.Peer(command)
        self.addCleanup(peer.stop)
        reference = Nghttpd(tls)
        self.addCleanup(reference.stop)
        host, port = peer.address.rsplit(":", 1)
        worse, both, theirs = {}, [], []
        for name in CASES:
            ours = outcome((host, int(port)), tls, name)
            other = None if ours is None and not self.all_of_theirs else outcome(reference.address, tls, name)
            if ours and other:
                both.append(name)
            elif ours:
                worse[name] = ours
            elif other:
                theirs.append(name)
        print(f"\n  {len(CASES)} cases; both fail: {both}; nghttpd alone: {theirs}")
        self.assertTrue(peer.alive())
        self.assertEqual(worse, {})

    # True tries nghttpd where ours passes too.
    all_of_theirs = False

    def test_plain(self):
        self.check(tls=False)

    def test_tls(self):
        self.check(tls=True)

    def test_tls_without_alpn_is_turned_away(self):
        import ssl
        made = certificates.made()
        peer = harness.Peer([
            swift("server"), "--port=0", "--host=127.0.0.1", "--use_tls=true",
            f"--tls_cert_file={made.pem('server')}", f"--tls_key_file={made.key('server')}"])
        self.addCleanup(peer.stop)
        host, port = peer.address.rsplit(":", 1)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for protocols in ([], ["http/1.1"]):
            if protocols:
                context.set_alpn_protocols(protocols)
            with socket.create_connection((host, int(port)), timeout=harness.LIMIT) as link:
                try:
                    with context.wrap_socket(link) as wrapped:
                        self.assertNotEqual(wrapped.selected_alpn_protocol(), "h2")
                        self.assertEqual(wrapped.recv(1), b"")
                except OSError:
                    pass  # refused in the handshake


if __name__ == "__main__":
    unittest.main()
