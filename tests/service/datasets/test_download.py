"""Downloads against a real local server: resumed, checked, and never taken for another file."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator.datasets.errors import DownloadFailed
from orchestrator.datasets.fetching.download import fetch, hub_headers
from orchestrator.datasets.fetching.sources import RemoteFile
from orchestrator.errors import NoSpace
from orchestrator.system.files import DiskRoom

DATA = bytes(range(256)) * 8000
SHA = hashlib.sha256(DATA).hexdigest()


@dataclass
class Server:
    """Serves DATA; `cuts` says after how many bytes each transfer in turn breaks off, `statuses` what to answer first."""

    url: str = ""
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    ranges: bool = True
    shifted: int = 0
    """How far from the place asked for a resumed transfer begins."""
    tags: list[str] = field(default_factory=list)
    """ETags, one per answer."""
    endless: bool = False
    linked: dict[str, str] = field(default_factory=dict)
    leads_to: str = "/file"
    asked: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            state.asked.append({name.lower(): value for name, value in self.headers.items()})
            if self.path == "/linked":
                self.send_response(302)
                for name, value in state.linked.items():
                    self.send_header(name, value)
                self.send_header("Location", state.leads_to)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if state.statuses:
                self.send_response(state.statuses.pop(0))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = 0
            if state.ranges and (wanted := self.headers.get("Range")):
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(DATA):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(DATA)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            tag = state.tags.pop(0) if state.tags else ""
            if tag and self.headers.get("If-Range", tag) != tag:
                start = 0
            self.send_response(206 if start else 200)
            if start:
                start -= state.shifted
                self.send_header("Content-Range", f"bytes {start}-{len(DATA) - 1}/{len(DATA)}")
            if tag:
                self.send_header("ETag", tag)
            if not state.endless:
                self.send_header("Content-Length", str(len(DATA) - start))
            self.end_headers()
            while state.endless:
                try:
                    self.wfile.write(DATA)
                except OSError:
                    return
            cut = state.cuts.pop(0) if state.cuts else len(DATA)
            self.wfile.write(DATA[start : start + cut])
            self.close_connection = True

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    yield state
    running.shutdown()
    running.server_close()
    thread.join()


def get(server: Server, target: Path, path: str = "/file", **facts: object) -> Path:
    return fetch(RemoteFile(server.url + path, **facts), target, sleep=lambda _: None)  # type: ignore[arg-type]


def test_a_file_arrives_with_progress(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    target = fetch(
        RemoteFile(f"{server.url}/file", len(DATA), SHA), tmp_path / "a" / "f", progress=lambda *step: seen.append(step)
    )
    assert target.read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert [path.name for path in target.parent.iterdir()] == ["f"]


def test_a_broken_transfer_is_resumed_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.cuts = [100_000, 500_000]
    assert get(server, tmp_path / "f", sha256=SHA).read_bytes() == DATA
    assert [asked.get("range") for asked in server.asked] == [None, "bytes=100000-", "bytes=600000-"]


def test_what_an_earlier_process_left_is_used(server: Server, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(DATA[:1_000_000])
    assert get(server, tmp_path / "f", sha256=SHA).read_bytes() == DATA
    assert server.asked[0]["range"] == "bytes=1000000-"


def test_a_complete_part_needs_no_more_bytes(server: Server, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(DATA)
    assert get(server, tmp_path / "f", sha256=SHA).read_bytes() == DATA


def test_a_server_without_ranges_is_asked_from_the_start(server: Server, tmp_path: Path) -> None:
    server.ranges, server.cuts = False, [700_000]
    assert get(server, tmp_path / "f", sha256=SHA).read_bytes() == DATA


def test_another_version_is_never_joined_to_a_part(server: Server, tmp_path: Path) -> None:
    server.cuts, server.tags = [1000], ['"old"', '"new"']
    (tmp_path / "f.part").write_bytes(b"z" * 500)
    (tmp_path / "f.part.version").write_text('"older"')
    fetch(RemoteFile(f"{server.url}/file"), tmp_path / "f", sleep=lambda _: None)
    assert (tmp_path / "f").read_bytes() == DATA
    assert [each.get("if-range") for each in server.asked] == ['"older"', '"old"']
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f"]


def test_a_server_that_goes_on_elsewhere_is_asked_from_the_start(server: Server, tmp_path: Path) -> None:
    server.cuts, server.shifted = [1000], 300
    fetch(RemoteFile(f"{server.url}/file"), tmp_path / "f", sleep=lambda _: None)
    assert (tmp_path / "f").read_bytes() == DATA
    assert [each.get("range") for each in server.asked] == [None, "bytes=1000-", None]


def test_a_stream_that_does_not_end_is_cut_off(server: Server, tmp_path: Path) -> None:
    server.endless = True
    with pytest.raises(DownloadFailed, match="should have 1000000"):
        fetch(RemoteFile(f"{server.url}/file", size=1_000_000), tmp_path / "f", sleep=lambda _: None)
    room = DiskRoom(tmp_path, min_free_bytes=1 << 60)
    with pytest.raises(NoSpace):
        fetch(RemoteFile(f"{server.url}/file"), tmp_path / "f", room=room, sleep=lambda _: None)


def test_passing_trouble_is_tried_again(server: Server, tmp_path: Path) -> None:
    server.statuses = [503, 429]
    assert get(server, tmp_path / "f").read_bytes() == DATA


@pytest.mark.parametrize(("status", "hint"), [(401, "HF_TOKEN"), (403, "terms"), (404, "no such file"), (418, "by hand")])
def test_refusals_say_what_to_do(server: Server, tmp_path: Path, status: int, hint: str) -> None:
    server.statuses = [status]
    with pytest.raises(DownloadFailed, match=hint):
        get(server, tmp_path / "f")


def test_trouble_without_end_is_given_up_and_the_part_is_kept(server: Server, tmp_path: Path) -> None:
    server.cuts = [1000] * 10
    with pytest.raises(DownloadFailed, match="try again"):
        get(server, tmp_path / "f")
    assert (tmp_path / "f.part").stat().st_size == 5000


@pytest.mark.parametrize(
    ("facts", "why"),
    [({"sha256": "0" * 64}, "its sha256 is"), ({"size": len(DATA) - 1}, "should have")],
    ids=["sha256", "size"],
)
def test_another_file_than_expected_is_thrown_away(
    server: Server, tmp_path: Path, facts: dict[str, object], why: str
) -> None:
    with pytest.raises(DownloadFailed, match=why):
        get(server, tmp_path / "f", **facts)
    assert list(tmp_path.iterdir()) == []


def test_what_the_hub_says_of_a_file_is_checked(server: Server, tmp_path: Path) -> None:
    server.linked = {"X-Linked-Etag": f'"{SHA}"', "X-Linked-Size": str(len(DATA))}
    assert get(server, tmp_path / "f", "/linked").read_bytes() == DATA
    server.linked = {"X-Linked-Etag": '"' + "1" * 64 + '"', "X-Linked-Size": str(len(DATA))}
    with pytest.raises(DownloadFailed, match="expected 1111"):
        get(server, tmp_path / "g", "/linked")


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="5 tries"):
        fetch(RemoteFile("http://127.0.0.1:9/file"), tmp_path / "f", sleep=lambda _: None)


@pytest.mark.parametrize(
    ("url", "environment", "sent"),
    [
        ("https://hub.example/x", {"HF_ENDPOINT": "https://hub.example", "HF_TOKEN": "t"}, True),
        ("https://other.example/x", {"HF_ENDPOINT": "https://hub.example", "HF_TOKEN": "t"}, False),
        ("http://hub.example/x", {"HF_ENDPOINT": "https://hub.example", "HF_TOKEN": "t"}, False),
        ("https://hub.example.evil/x", {"HF_ENDPOINT": "https://hub.example", "HF_TOKEN": "t"}, False),
        ("https://hub.example/x", {"HF_ENDPOINT": "https://hub.example"}, False),
    ],
)
def test_the_token_goes_to_the_hub_alone(url: str, environment: dict[str, str], sent: bool) -> None:
    assert bool(hub_headers(url, environment)) is sent


def test_a_redirect_to_another_host_does_not_get_the_token(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_TOKEN", "secret")
    server.leads_to = f"{server.url.replace('127.0.0.1', 'localhost')}/file"
    fetch(RemoteFile(f"{server.url}/linked"), tmp_path / "f")
    assert [each.get("authorization") for each in server.asked] == ["Bearer secret", None]
    assert (tmp_path / "f").read_bytes() == DATA
