"""Wraps Docker's SDK: the only module that imports docker.

Synchronous and thin: each method is one call of the engine's API, and decides nothing. Errors of docker, requests and
urllib3 are translated into ours; everything but an answer of the engine becomes `EngineUnreachable`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import docker
import docker.errors
import docker.utils
import requests
import urllib3.exceptions

from orchestrator.engines.engine import EngineError, EngineUnreachable, ImageMissing

SILENCE_LIMIT_S = 60
"""For pulls, which report progress but unpack large layers silently."""
DEFAULT_SOCKET = "unix:///var/run/docker.sock"
ANY_VERSION = "1.44"  #: never sent: the version request has no version in its path
TOLD = ("die", "oom", "pause", "unpause", "destroy")
CANNOT_ANSWER = frozenset({502, 503, 504})
_FOREIGN = (docker.errors.DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError)


class NotThere(EngineError):
    """The engine has no such container or network."""


class Conflict(EngineError):
    """The engine reports a name as taken, or a container as not running or being removed."""


class DockerApi:
    """Thread-safe. Connects on the first call."""

    def __init__(self, base_url: str | None, connections: int, limit_s: float = 9) -> None:
        self.address = base_url or os.environ.get("DOCKER_HOST") or DEFAULT_SOCKET
        self._use_environment = base_url is None
        self._connections = connections
        self._limit_s = limit_s
        self._connecting = threading.Lock()
        self._client: docker.APIClient | None = None

    def info(self) -> dict[str, Any]:
        with self._door() as client:
            return dict(client.info())

    def find_network(self, name: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotThere), self._door() as client:
            return dict(client.inspect_network(name))
        return None

    def create_network(self, options: dict[str, Any]) -> None:
        """Succeeds if it exists already."""
        with contextlib.suppress(Conflict), self._door() as client:
            client.create_network(**options)

    def remove_network(self, network_id: str) -> None:
        with contextlib.suppress(NotThere), self._door() as client:
            client.remove_network(network_id)

    def connect_network(self, name: str, container: str, aliases: Sequence[str] = ()) -> None:
        with self._door() as client:
            client.connect_container_to_network(container, name, aliases=list(aliases) or None)

    def can_limit_volumes(self, options: dict[str, Any]) -> bool:
        """Whether the engine can create volumes of limited size; the only way to know is to try."""
        name = f"benchyard-quota-{uuid4().hex[:12]}"
        try:
            with self._door() as client:
                client.create_volume(name, options["Name"], options["Options"])
                client.remove_volume(name)
        except EngineUnreachable:
            raise
        except EngineError:
            return False
        return True

    def disconnect_network(self, name: str, container: str) -> None:
        with contextlib.suppress(NotThere, Conflict), self._door() as client:
            client.disconnect_container_from_network(container, name)

    def create(self, options: dict[str, Any]) -> str:
        with self._door() as client:
            return str(client.create_container(**options)["Id"])

    def pull(self, image: str, check: Callable[[], None] = lambda: None) -> None:
        """Pull an image, with the user's own registry login; `check` is called between steps and may raise."""
        with _translated(self.address), contextlib.closing(self._open(SILENCE_LIMIT_S)) as client:
            said: Any = client.pull(image, stream=True, decode=True)  # without a tag: latest
            for line in said:
                check()
                if line.get("error"):  # the response status was sent before this error
                    raise EngineError(f"Docker refused: {line['error']}")

    def find_image(self, image: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotThere, ImageMissing), self._door() as client:
            return dict(client.inspect_image(image))  # type: ignore[no-untyped-call]
        return None

    def start(self, container: str, first_line: bytes) -> None:
        """Start a container, write one line to its standard input, and close that."""
        with self._door() as client:
            attached = client.attach_socket(container, params={"stdin": 1, "stream": 1})
            try:
                client.start(container)
                wire = getattr(attached, "_sock", attached)
                wire.settimeout(self._limit_s)
                wire.sendall(first_line.rstrip(b"\n") + b"\n")
                with contextlib.suppress(OSError):
                    wire.shutdown(socket.SHUT_WR)
            finally:
                if (response := getattr(attached, "_response", None)) is not None:
                    response.close()
                attached.close()

    def inspect(self, container: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotThere), self._door() as client:
            return dict(client.inspect_container(container))
        return None

    def ids(self, labels: list[str]) -> list[str]:
        with self._door() as client:
            return [str(summary["Id"]) for summary in client.containers(all=True, filters={"label": labels})]

    def stop(self, container: str, grace_s: int) -> None:
        with contextlib.suppress(NotThere, Conflict), self._door() as client:
            client.stop(container, timeout=grace_s)

    def kill(self, container: str) -> None:
        with contextlib.suppress(NotThere, Conflict), self._door() as client:
            client.kill(container)

    def remove(self, container: str) -> None:
        with contextlib.suppress(NotThere, Conflict), self._door() as client:
            client.remove_container(container, force=True, v=True)

    def logs(self, container: str) -> bytes:
        with contextlib.suppress(NotThere), self._door() as client:
            return bytes(client.logs(container))
        return b""

    def stats(self, container: str) -> dict[str, Any]:
        with contextlib.suppress(NotThere), self._door() as client:
            try:
                return dict(client.stats(container, stream=False, one_shot=True))
            except docker.errors.InvalidVersion:  # engines before 20.10: takes a second
                return dict(client.stats(container, stream=False))
        return {}

    def events(self, label: str, streams: list[Any]) -> Iterator[str]:
        """Names of containers as they change, except by starting, which we do ourselves. Uses its own connection, which
        it adds to `streams` for `close_streams`."""
        with _translated(self.address), contextlib.closing(self._open()) as client:
            stream = client.events(decode=True, filters={"type": "container", "label": label, "event": list(TOLD)})
            streams.append(stream)
            for event in stream:
                name = ((event.get("Actor") or {}).get("Attributes") or {}).get("name")
                if name:
                    yield str(name)

    def close_streams(self, streams: list[Any]) -> None:
        for stream in streams:
            with contextlib.suppress(*_FOREIGN, AttributeError):
                stream.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    @contextlib.contextmanager
    def _door(self) -> Iterator[docker.APIClient]:
        with _translated(self.address):
            with self._connecting:
                if self._client is None:
                    self._client = self._open()
            self._knock()
            yield self._client

    def _knock(self) -> None:
        """Fail early on a unix socket without a listener: the SDK would leak its own end."""
        if self.address.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(self._limit_s)
                probe.connect(self.address.removeprefix("unix://"))

    def _open(self, timeout_s: float | None = None) -> docker.APIClient:
        """A client for the engine's own API version. The SDK's way to find that leaks a socket if it fails."""
        self._knock()
        arguments: dict[str, Any] = {**docker.utils.kwargs_from_env()} if self._use_environment else {}
        arguments |= {"base_url": self.address, "timeout": timeout_s or self._limit_s, "max_pool_size": self._connections}
        with contextlib.closing(docker.APIClient(version=ANY_VERSION, **arguments)) as asking:
            answer = asking.version(api_version=False)
        if not isinstance(answer, dict) or not isinstance(answer.get("ApiVersion"), str):
            raise docker.errors.DockerException("no version in the answer")
        return docker.APIClient(version=answer["ApiVersion"], **arguments)


@contextlib.contextmanager
def _translated(address: str) -> Iterator[None]:
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise ImageMissing(str(error.explanation)) from error
    except docker.errors.APIError as error:
        text = str(error.explanation or error).strip()
        if error.status_code in CANNOT_ANSWER:
            raise EngineUnreachable(f"Docker at {address} cannot answer now: {text}") from error
        kind = {404: NotThere, 409: Conflict}.get(error.status_code or 0, EngineError)
        raise kind(f"Docker refused: {text}") from error
    except _FOREIGN as error:
        raise EngineUnreachable(
            f"No Docker engine answers at {address} ({type(error).__name__}). Start Docker, or set DOCKER_HOST."
        ) from error
