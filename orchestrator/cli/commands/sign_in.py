"""Sign in and out of a service, and say who one is there."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import secrets
import time
import webbrowser
from typing import Annotated, Any
from urllib.parse import urlencode

import typer
from rich.text import Text

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection
from orchestrator.cli.api.kept_logins import keep, kept
from orchestrator.cli.api.loopback import Loopback
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import CliError, Refused
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean

PATIENCE_S = 600.0


def login(
    token: Annotated[bool, typer.Option("--token", help="Ask for a token instead of signing in.")] = False,
    browser: Annotated[bool, typer.Option("--browser", help="With a browser, even if a device code is offered.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Sign in: with a device code of the identity provider, with a browser, or with a token."""
    with command(as_json) as cmd:
        if token:
            got = str(typer.prompt("Token", hide_input=True)).strip()
        else:
            device = None if browser else _ask_device(cmd)
            got = _with_browser(cmd) if device is None else _with_device(cmd, device)
        with Client(Connection(cmd.connection.url, got, given=True)) as client:
            who = client.account()
        path = keep(os.environ, cmd.connection.url, got)
        cmd.out.result(who, lambda: _told(who))
        cmd.out.note(f"The token is kept in {path}.")


def logout(as_json: JsonFlag = False) -> None:
    """Forget the token that `login` kept for this service. Revoke it on the account page."""
    with command(as_json) as cmd:
        had = cmd.connection.url in kept(os.environ)
        keep(os.environ, cmd.connection.url, None)
        cmd.out.result({"forgotten": had}, lambda: Text("Signed out." if had else "You were not signed in."))


def whoami(as_json: JsonFlag = False) -> None:
    """Who you are at the service, and in which workspace."""
    with command(as_json) as cmd:
        who = cmd.client.account()
        cmd.out.result(who, lambda: _told(who))


def _told(who: dict[str, Any]) -> Text:
    others = ", ".join(clean(each["slug"]) for each in who["workspaces"] if each["slug"] != who["workspace"])
    also = f"; also in {others}" if others else ""
    return Text(f"{clean(who['name'])}: {clean(who['role'])} ({clean(who['scope'])}) in {clean(who['workspace'])}{also}")


def _ask_device(cmd: Command) -> dict[str, Any] | None:
    try:
        return cmd.client.begin_device(platform.node()[:60] or "here")
    except Refused as error:
        if error.status == 404:
            return None
        raise


def _with_device(cmd: Command, device: dict[str, Any]) -> str:
    address = clean(device["whole_address"] or device["address"])
    cmd.out.note(f"Open {address} and confirm the code {clean(device['user_code'])}.")
    pause, end = float(device["interval_s"]), time.monotonic() + float(device["expires_s"])
    while time.monotonic() < end:
        time.sleep(pause)
        state = cmd.client.poll_device(str(device["handle"]), platform.node()[:60] or "here")
        if state["token"]:
            return str(state["token"])
        pause += 5 if state["slower"] else 0
    raise CliError("Nobody confirmed the code in time; start `benchyard login` again.")


def _with_browser(cmd: Command) -> str:
    state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    waiting = Loopback(state)
    query = {"port": waiting.port, "state": state, "challenge": challenge, "device": platform.node()[:60] or "here"}
    address = f"{cmd.connection.url}/account/command-line?{urlencode(query)}"
    cmd.out.note(f"Open this address in a browser on this machine, and agree:\n{address}")
    webbrowser.open(address)
    code = waiting.wait(PATIENCE_S)
    if code is None:
        raise CliError("Nobody agreed in time; start `benchyard login` again, or `benchyard login --token`.")
    return cmd.client.exchange_code(code, verifier)
