"""A real HTTP server that speaks what the Hugging Face hub speaks of data sets: information, files, redirects to storage."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_reader"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class HubRepo:
    files: Mapping[str, bytes]
    card: dict[str, Any] = field(default_factory=dict)
    commit: str = COMMIT
    refs: tuple[str, ...] = ("main",)
    private: bool = False
    gated: bool = False
    members: tuple[str, ...] = (TOKEN,)
    """Tokens of accounts that may read it if it is private or gated."""

    @property
    def restricted(self) -> bool:
        return self.private or self.gated


@dataclass
class Hub:
    url: str = ""
    repos: dict[str, HubRepo] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    """After how many bytes each transfer of a large file in turn breaks off."""
    statuses: list[int] = field(default_factory=list)
    """What to answer to the next questions about data sets."""
    lies: dict[str, bytes] = field(default_factory=dict)
    """Content that is sent instead, by path."""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def paths(self, part: str) -> list[str]:
        return [path for path, _ in self.asked if part in path]


@contextmanager
def serving_hub() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            if path.startswith("/storage/"):
                self._send_data(self._stored(path.removeprefix("/storage/")))
            elif path.startswith("/api/datasets/"):
                self._answer_info(path.removeprefix("/api/datasets/"))
            else:
                self._answer_file(path.removeprefix("/datasets/"))

        def _stored(self, sha256: str) -> bytes:
            for repo in hub.repos.values():
                for name, data in repo.files.items():
                    if hashlib.sha256(data).hexdigest() == sha256:
                        return hub.lies.get(name, data)
            raise KeyError(sha256)

        def _answer_info(self, path: str) -> None:
            if hub.statuses:
                self._refuse(hub.statuses.pop(0))
                return
            name, _, revision = path.partition("/revision/")
            repo = hub.repos.get(name)
            if repo is None or (repo.private and not self._is_member(repo)):
                self._refuse(401, "RepoNotFound")
            elif revision and revision not in (*repo.refs, repo.commit):
                self._refuse(404, "RevisionNotFound")
            else:
                self._send_json(
                    {
                        "_id": "1",
                        "id": name,
                        "sha": repo.commit,
                        "private": repo.private,
                        "gated": "auto" if repo.gated else False,
                        "cardData": repo.card,
                        "siblings": [_sibling(file, data) for file, data in repo.files.items()],
                    }
                )

        def _answer_file(self, path: str) -> None:
            name, _, rest = path.partition("/resolve/")
            commit, _, file = rest.partition("/")
            repo = hub.repos.get(name)
            if repo is None or (repo.private and not self._is_member(repo)):
                self._refuse(401, "RepoNotFound")
            elif repo.gated and not self._is_member(repo):
                self._refuse(403 if "authorization" in {key.lower() for key in self.headers} else 401, "GatedRepo")
            elif commit not in (*repo.refs, repo.commit) or file not in repo.files:
                self._refuse(404, "EntryNotFound")
            elif _is_large(file):
                sha256 = hashlib.sha256(repo.files[file]).hexdigest()
                self.send_response(302)
                self.send_header("X-Repo-Commit", repo.commit)
                self.send_header("X-Linked-Etag", f'"{sha256}"')
                self.send_header("X-Linked-Size", str(len(repo.files[file])))
                self.send_header("Location", f"{hub.url.replace('127.0.0.1', 'localhost')}/storage/{sha256}")
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._send_data(hub.lies.get(file, repo.files[file]))

        def _is_member(self, repo: HubRepo) -> bool:
            return self.headers.get("Authorization", "").removeprefix("Bearer ") in repo.members

        def _refuse(self, status: int, code: str = "") -> None:
            self.send_response(status)
            if code:
                self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _send_json(self, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _send_data(self, data: bytes) -> None:
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            cut = hub.cuts.pop(0) if hub.cuts else len(data)
            self.wfile.write(data[start : start + cut])
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _is_large(name: str) -> bool:
    """As on the hub, binary files are in large-file storage."""
    return name.endswith((".parquet", ".gz", ".zst", ".zip"))


def _sibling(name: str, data: bytes) -> dict[str, Any]:
    facts: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": hashlib.sha1(data).hexdigest()}
    if _is_large(name):
        facts["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return facts
