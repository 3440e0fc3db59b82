"""A registry on the loopback with one image of one empty layer: enough for an engine to pull from."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class SmallRegistry:
    def __init__(self, address: str, tag: str, mark: str) -> None:
        """`mark` goes into the image, so that no two are the same."""
        self.image = f"{address}/benchyard-test-pulled:{tag}"
        self.absent = f"{address}/benchyard-test-pulled:absent"
        self.asked: list[str] = []
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w"):
            pass
        packed = gzip.compress(layer.getvalue(), mtime=0)
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Labels": {"mark": mark}},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer.getvalue())]},
            }
        ).encode()
        parts = [
            {"mediaType": kind, "size": len(each), "digest": _digest(each)}
            for kind, each in ((CONFIG, config), (LAYER, packed))
        ]
        manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": parts[0], "layers": parts[1:]}).encode()
        self._files = {f"blobs/{_digest(each)}": (each, "application/octet-stream") for each in (config, packed)}
        self._files |= {f"manifests/{name}": (manifest, MANIFEST) for name in (tag, _digest(manifest))}

    def answer(self, path: str) -> tuple[int, bytes, str]:
        if path == "/v2/":
            return 200, b"{}", "application/json"
        name = "/".join(path.split("/")[-2:])
        self.asked.append(name)
        if name not in self._files:
            return 404, b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}', "application/json"
        return 200, *self._files[name]


@contextmanager
def small_registry(tag: str, mark: str) -> Iterator[SmallRegistry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, kind = registry.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if kind == MANIFEST:
                self.send_header("Docker-Content-Digest", _digest(body))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry = SmallRegistry(f"127.0.0.1:{server.server_address[1]}", tag, mark)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
