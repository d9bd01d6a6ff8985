"""Certificates for tests, made by the openssl command in a folder of their own."""

import atexit
import shutil
import subprocess
import tempfile
from pathlib import Path


class Certificates:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="vencejo-tls-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)

    def openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)

    def pem(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def key(self, name: str) -> str:
        return str(self.folder / f"{name}.key")

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def _request(self, name: str, subject: str) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", self.key(name), "-subj", subject]

    def issuer(self, name: str) -> None:
        self.openssl("req", "-x509", *self._request(name, f"/CN={name}"), "-out", self.pem(name),
                     "-days", "2")

    def leaf(self, name: str, issuer: str,
             alternatives: str = "DNS:localhost,IP:127.0.0.1") -> None:
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.cnf"
        extensions.write_text(f"subjectAltName={alternatives}\n")
        self.openssl("req", *self._request(name, f"/CN={name}"), "-out", str(request))
        self.openssl("x509", "-req", "-in", str(request), "-CA", self.pem(issuer),
                     "-CAkey", self.key(issuer), "-CAcreateserial", "-out", self.pem(name),
                     "-days", "2", "-extfile", str(extensions))


_made = None


def made() -> Certificates:
    """`server` from `root`, `ana` from `people`; the same for all tests of a run."""
    global _made
    if _made is None:
        _made = Certificates()
        for issuer in ("root", "people"):
            _made.issuer(issuer)
        _made.leaf("server", "root")
        _made.leaf("ana", "people", "URI:spiffe://vencejo.example/ana")
    return _made
