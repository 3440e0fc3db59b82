"""Commands about providers: list, add, set, test, forget, remove."""

from __future__ import annotations

import sys
from typing import Annotated
from urllib.parse import quote

import typer

from orchestrator.cli.api.client import Json
from orchestrator.cli.context import command, command_group
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.output import Columns, JsonFlag
from orchestrator.cli.view.text import clean


def _key(provider: Json) -> str:
    match provider["key"]:
        case "vault":
            return f"vault, …{provider['key_hint']}" if provider["key_hint"] else "vault"
        case "file":
            return str(provider["key_file"])
        case "variable":
            return str(provider["key_variable"]) + ("" if provider["has_key"] else " (not set)")
    return "none"


COLUMNS: Columns = {
    "Provider": "name",
    "Set by": lambda provider: provider["source"].replace("_", " "),
    "Kind": "kind",
    "Base URL": "base_url",
    "Key": _key,
    "Models": "models",
}

providers_app = command_group("Servers that models are asked at: list (the default), add, set, test, forget, remove.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The provider's name.")]
Kind = Annotated[
    str | None, typer.Option(help="What server it is, such as vllm, azure or mistral. Default: OpenAI-compatible.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Its address. Default: the known one of its kind.")]
Protocols = Annotated[
    list[str] | None, typer.Option("--protocol", help="anthropic, openai_chat, openai_responses; may be repeated.")
]
WithKey = Annotated[bool, typer.Option("--key", help="Read a key from standard input or a prompt; it is stored encrypted.")]
KeyVariable = Annotated[str | None, typer.Option(metavar="NAME", help="The service's variable that has the key.")]
KeyFile = Annotated[str | None, typer.Option(metavar="PATH", help="A file with the key, on the service's machine.")]
HeaderOption = Annotated[
    list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="Sent with every request; may be repeated.")
]
Proxy = Annotated[str | None, typer.Option(metavar="URL", help="A proxy for this provider only.")]
CaBundle = Annotated[
    str | None, typer.Option(metavar="PATH", help="Further certificate authorities, on the service's machine.")
]
ClientCert = Annotated[str | None, typer.Option(metavar="PATH", help="A client certificate, on the service's machine.")]
ClientKey = Annotated[str | None, typer.Option(metavar="PATH", help="Its private key, if in another file.")]
AllowPrivate = Annotated[
    bool | None, typer.Option("--allow-private/--no-allow-private", help="Whether it may be at a private address.")
]
ListPath = Annotated[str | None, typer.Option(metavar="PATH", help="Where its models are listed, below the base URL.")]
ListWithoutKey = Annotated[
    bool | None, typer.Option("--list-without-key/--list-with-key", help="Whether the list is asked for without the key.")
]
ApiVersion = Annotated[str | None, typer.Option(help="For servers that want one, such as Azure's deployments.")]

PLAIN = (
    *("kind", "base_url", "key_variable", "key_file", "proxy", "ca_bundle", "client_cert", "client_key"),
    *("allow_private", "list_path", "list_without_key", "api_version"),
)
CLEARABLE = frozenset({*PLAIN, "protocols", "key", "headers"})


def _fields(context: typer.Context) -> Json:
    params = context.params
    body: Json = {name: params[name] for name in PLAIN if params[name] is not None}
    if params["protocol"]:
        body["protocols"] = list(params["protocol"])
    if params["header"]:
        body["headers"] = dict(_header(text) for text in params["header"])
    if params["key"]:
        secret = (typer.prompt("Key", hide_input=True) if sys.stdin.isatty() else sys.stdin.read()).strip()
        if not secret:
            raise CliError(
                "No key was given; type it at the prompt, or pipe it in: benchyard providers add lab --key < key.txt"
            )
        body["key"] = secret
    return body


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise typer.BadParameter("write it as 'Name: value'", param_hint="--header")
    return name.strip(), value.strip()


@providers_app.command("list")
def list_providers(as_json: JsonFlag = False) -> None:
    """List providers, and what was learned of their servers."""
    with command(as_json) as cmd:
        providers = cmd.client.items("/api/providers")
        cmd.out.items(providers, COLUMNS, right=("Models",), empty="No providers.")
        for provider in providers:
            for learned in provider["learned"]:
                for sentence in learned["sentences"]:
                    cmd.out.note(f"{clean(provider['name'])}, {clean(learned['model'])}: {clean(sentence)}")


@providers_app.command("add")
def add_provider(
    context: typer.Context,
    name: NameArgument,
    kind: Kind = None,
    base_url: BaseUrl = None,
    protocol: Protocols = None,
    key: WithKey = False,
    key_variable: KeyVariable = None,
    key_file: KeyFile = None,
    header: HeaderOption = None,
    proxy: Proxy = None,
    ca_bundle: CaBundle = None,
    client_cert: ClientCert = None,
    client_key: ClientKey = None,
    allow_private: AllowPrivate = None,
    list_path: ListPath = None,
    list_without_key: ListWithoutKey = None,
    api_version: ApiVersion = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a provider; it can be used at once."""
    body = {"name": name, **_fields(context)}
    with command(as_json) as cmd:
        added = cmd.client.post("/api/providers", body)
        cmd.out.result(added, f"Added {clean(added['name'])}. Try it: benchyard providers test {clean(added['name'])}")


@providers_app.command("set")
def set_provider(
    context: typer.Context,
    name: NameArgument,
    kind: Kind = None,
    base_url: BaseUrl = None,
    protocol: Protocols = None,
    key: WithKey = False,
    key_variable: KeyVariable = None,
    key_file: KeyFile = None,
    header: HeaderOption = None,
    proxy: Proxy = None,
    ca_bundle: CaBundle = None,
    client_cert: ClientCert = None,
    client_key: ClientKey = None,
    allow_private: AllowPrivate = None,
    list_path: ListPath = None,
    list_without_key: ListWithoutKey = None,
    api_version: ApiVersion = None,
    clear: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="Remove a value, such as proxy or headers; may be repeated.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Change a provider; omitted options change nothing. Another address needs key and headers again."""
    cleared = {option.replace("-", "_") for option in clear or ()}
    if unknown := cleared - CLEARABLE:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))} cannot be removed", param_hint="--clear")
    body = {**_fields(context), **dict.fromkeys(cleared)}
    if not body:
        raise typer.BadParameter("name something to change, such as --base-url https://llm.example/v1")
    with command(as_json) as cmd:
        changed = cmd.client.patch(f"/api/providers/{quote(name)}", body)
        cmd.out.result(changed, f"Changed {clean(changed['name'])}. It takes effect at once.")


@providers_app.command("test")
def try_provider(
    name: NameArgument,
    model: Annotated[str | None, typer.Option(help="Slug, or name at the provider. Default: any.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a few real calls and say what the server understood."""
    with command(as_json) as cmd:
        found = cmd.client.post(f"/api/providers/{quote(name)}/test", {"model": model} if model else {})
        of_model = f" ({clean(found['model'])})" if found["model"] else ""
        cmd.out.result(found, f"{clean(name)}{of_model}: {clean(found['summary'])}")
        if not found["ok"]:
            raise typer.Exit(1)


@providers_app.command("forget")
def forget_learned(
    name: NameArgument,
    model: Annotated[str | None, typer.Option(help="Its name at the provider. Default: all models.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Forget what a server taught about requests; the next call is in the usual form."""
    with command(as_json) as cmd:
        answer = cmd.client.delete(f"/api/providers/{quote(name)}/learned", model=model)
        cmd.out.result(answer, f"Forgot what was learned about {answer['forgotten']} models.")


@providers_app.command("remove")
def remove_provider(name: NameArgument, as_json: JsonFlag = False) -> None:
    """Remove a provider and its key; its models stay."""
    with command(as_json) as cmd:
        cmd.client.delete(f"/api/providers/{quote(name)}")
        cmd.out.result({"removed": name}, f"Removed {clean(name)}.")
