"""`benchyard prices` against a real service, with a list from a file and from an address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tests.served import Service
from tests.service.prices.test_price_lists import a_list
from tests.unit.cli.command_line import Benchyard


@contextmanager
def served_file(body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/list.json" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_prices_are_listed_shown_updated_and_used(service: Service, benchyard: Benchyard, tmp_path: Path) -> None:
    assert "claude-opus-5-5" in benchyard("prices", "list", "--provider", "anthropic").out
    assert "older than 90 days" in benchyard("prices", "list", "--provider", "openai").err
    assert "platform.claude.com" in benchyard("prices", "show", "anthropic", "claude-sonnet-5").out
    added = benchyard("models", "add", "mini", "--provider", "openai", "--name", "gpt-4o-mini", "--json").json
    assert (added["input_price"], added["training_cutoff"]) == (0.15, "2023-10-01")
    assert "(old)" in benchyard("models", "list").out
    assert "days old" in benchyard("models", "list").err

    file = tmp_path / "list.json"
    file.write_bytes(a_list(**{"gpt-4o-mini": {}, "bad": {"output_cost_per_token": -1}}))
    updated = benchyard("prices", "update", "--from", str(file))
    assert "Prices taken: 1. Models changed here: 1. Entries left out: 1." in updated.out
    assert "left out bad: output_price" in updated.err
    with served_file(a_list(**{"gpt-4o-mini": {"input_cost_per_token": 3e-06}})) as url:
        assert benchyard("prices", "update", "--from", f"{url}/list.json", "--json").json["changed"] == ["mini"]
        gone = benchyard("prices", "update", "--from", f"{url}/elsewhere")
        assert (gone.code, "answered 404" in gone.err) == (1, True)
    assert "3 / 10, of 20" in benchyard("models", "list").out
    benchyard("models", "set", "mini", "--input-price", "7", "--output-price", "8")
    assert "7 / 8, entered 20" in benchyard("models", "list").out
    assert "3 / 10" in benchyard("prices", "use", "mini").out
    assert benchyard("prices", "update", "--from", str(tmp_path / "none")).code == 1
