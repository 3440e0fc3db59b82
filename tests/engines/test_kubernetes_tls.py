"""TLS to the API server: clusters whose authority's certificate has few fields are trusted, foreign ones are not."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from orchestrator.engines.engine import EngineUnreachable
from orchestrator.engines.kubernetes.api import KubeApi, tls_context

NOW = dt.datetime(2026, 1, 1)


def write_authority(folder: Path, name: str) -> None:
    """As EKS makes it: a certificate that says of itself that it is an authority, and nothing else."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    new = x509.CertificateBuilder().issuer_name(authority_name).not_valid_before(NOW)
    new = new.not_valid_after(NOW + dt.timedelta(days=36500))
    authority = (
        new.subject_name(authority_name)
        .public_key(authority_key.public_key())
        .serial_number(1)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server = (
        new.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]))
        .public_key(key.public_key())
        .serial_number(2)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / f"{name}.crt").write_bytes(authority.public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    (folder / f"{name}-server.pem").write_bytes(secret + server.public_bytes(pem))


class Version(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"gitVersion": "v1.2.3"}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    for name in ("ours", "foreign"):
        write_authority(tmp_path, name)
    server = HTTPServer(("127.0.0.1", 0), Version)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ours-server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def open_api(folder: Path, port: int, authority: str) -> KubeApi:
    path = folder / "kubeconfig"
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(folder / f"{authority}.crt")}
    named = {
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
    }
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **named}))
    return KubeApi("runners", path, None, connections=1, limit_s=10)


def test_an_authority_with_few_fields_is_trusted_and_a_foreign_one_is_not(tmp_path: Path, port: int) -> None:
    api = open_api(tmp_path, port, "ours")
    assert api.version() == "v1.2.3"
    api.close()
    stranger = open_api(tmp_path, port, "foreign")
    with pytest.raises(EngineUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
        stranger.version()
    stranger.close()


def test_the_form_of_certificates_is_not_verified_but_all_else_is() -> None:
    context = tls_context(None, verify=True)
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert tls_context(None, verify=False).verify_mode is ssl.CERT_NONE
