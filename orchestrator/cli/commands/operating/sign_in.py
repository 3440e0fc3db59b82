"""Commands to sign in to a service, sign out, and show who is signed in."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import secrets
import time
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Annotated
from urllib.parse import parse_qs, urlencode, urlsplit

import typer

from orchestrator.cli.api.client import Client, Json
from orchestrator.cli.api.connection import Connection, store_login
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import CliError, Refused
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean
from orchestrator.client.service_address import stored_logins

TIMEOUT_S = 600.0
SIGNED_IN_PAGE = b"<!doctype html><title>Benchyard</title><p>The command line is signed in. This page can be closed.</p>"


def login(
    token: Annotated[bool, typer.Option("--token", help="Ask for a token instead of signing in.")] = False,
    browser: Annotated[bool, typer.Option("--browser", help="With a browser, even if a device code is offered.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Sign in: with a device code of the identity provider, with a browser, or with a token."""
    with command(as_json) as cmd:
        if token:
            new_token = str(typer.prompt("Token", hide_input=True)).strip()
        else:
            device = None if browser else _request_device_code(cmd)
            new_token = _with_browser(cmd) if device is None else _with_device(cmd, device)
        with Client(Connection(cmd.connection.url, new_token, given=True)) as client:
            account = client.get("/api/account")
        path = store_login(os.environ, cmd.connection.url, new_token)
        cmd.out.result(account, _account_sentence(account))
        cmd.out.note(f"The token is stored in {path}.")


def logout(as_json: JsonFlag = False) -> None:
    """Delete the token that `login` stored for this service. Revoke it on the account page."""
    with command(as_json) as cmd:
        was_signed_in = cmd.connection.url in stored_logins(os.environ)
        store_login(os.environ, cmd.connection.url, None)
        cmd.out.result({"forgotten": was_signed_in}, "Signed out." if was_signed_in else "You were not signed in.")


def whoami(as_json: JsonFlag = False) -> None:
    """Show who you are at the service, and in which workspace."""
    with command(as_json) as cmd:
        account = cmd.client.get("/api/account")
        cmd.out.result(account, _account_sentence(account))


def _account_sentence(account: Json) -> str:
    slugs = [clean(workspace["slug"]) for workspace in account["workspaces"] if workspace["slug"] != account["workspace"]]
    also = f"; also in {', '.join(slugs)}" if slugs else ""
    name, role, scope, workspace = (clean(account[field]) for field in ("name", "role", "scope", "workspace"))
    return f"{name}: {role} ({scope}) in {workspace}{also}"


def _request_device_code(cmd: Command) -> Json | None:
    """None if the identity provider does not support device codes."""
    try:
        return cmd.client.post("/login/device", {"device": _device_name()})
    except Refused as error:
        if error.status == 404:
            return None
        raise


def _with_device(cmd: Command, device: Json) -> str:
    address = clean(device["whole_address"] or device["address"])
    cmd.out.note(f"Open {address} and confirm the code {clean(device['user_code'])}.")
    pause_s, deadline = float(device["interval_s"]), time.monotonic() + float(device["expires_s"])
    while time.monotonic() < deadline:
        time.sleep(pause_s)
        state = cmd.client.post("/login/device/poll", {"handle": str(device["handle"]), "device": _device_name()})
        if state["token"]:
            return str(state["token"])
        pause_s += 5 if state["slower"] else 0
    raise CliError("Nobody confirmed the code in time; start `benchyard login` again.")


def _with_browser(cmd: Command) -> str:
    state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    server = _CodeServer(state)
    query = {"port": server.server_port, "state": state, "challenge": challenge, "device": _device_name()}
    address = f"{cmd.connection.url}/account/command-line?{urlencode(query)}"
    cmd.out.note(f"Open this address in a browser on this machine, and agree:\n{address}")
    webbrowser.open(address)
    code = server.wait(TIMEOUT_S)
    if code is None:
        raise CliError("Nobody agreed in time; start `benchyard login` again, or `benchyard login --token`.")
    return str(cmd.client.post("/login/command-line", {"code": code, "verifier": verifier})["token"])


def _device_name() -> str:
    return platform.node()[:60] or "here"


class _CodeServer(HTTPServer):
    """Waits on this machine's loopback address until a browser brings a code."""

    timeout = 1.0

    def __init__(self, state: str) -> None:
        self.state = state
        self.code: str | None = None
        super().__init__(("127.0.0.1", 0), _CodeHandler)

    def wait(self, timeout_s: float) -> str | None:
        deadline = time.monotonic() + timeout_s
        try:
            while self.code is None and time.monotonic() < deadline:
                self.handle_request()
        finally:
            self.server_close()
        return self.code


class _CodeHandler(BaseHTTPRequestHandler):
    server: _CodeServer

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        is_valid = query.get("state") == [self.server.state] and bool(query.get("code"))
        if is_valid:
            self.server.code = query["code"][0]
        self.send_response(200 if is_valid else 404)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(SIGNED_IN_PAGE if is_valid else b"")

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing, since the code must not appear on the terminal."""
