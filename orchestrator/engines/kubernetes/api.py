"""Wraps the official client: the only module that imports kubernetes.

Of the client it uses configuration, TLS, authentication and connections, including the refresh of tokens and the plugins of
kubeconfig files; JSON in and out is ours, since the client's own types refuse fields that its version does not know.
Synchronous and thin: each method is one call of the API, and decides nothing. Foreign errors are translated into ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import urllib3.exceptions
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException
from urllib3.util.ssl_ import create_urllib3_context

from orchestrator.engines.engine import EngineError, EngineUnreachable
from orchestrator.engines.kubernetes.errors import Conflict, NotThere, error_of

WATCH_S = 60
"""How long one watch lasts by the server's own limit. Another follows at once, from where it ended."""
TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
MERGE = "application/merge-patch+json"
PIECE = 64 * 1024
_FOREIGN = (urllib3.exceptions.HTTPError, OSError, ConfigException)


class KubeApi:
    """Thread-safe. Reads its configuration and connects on the first call."""

    def __init__(
        self,
        namespace: str,
        kubeconfig: Path | None,
        context: str | None,
        *,
        connections: int,
        limit_s: float,
        watch_silence_s: float = 75,
    ) -> None:
        self.namespace = namespace
        self.address = f"{kubeconfig or 'the cluster'}"
        self._kubeconfig, self._context = kubeconfig, context
        self._connections, self._limit_s, self._watch_silence_s = connections, limit_s, watch_silence_s
        self._connecting = threading.Lock()
        self._client: client.ApiClient | None = None

    # -- pods

    def create_pod(self, manifest: dict[str, Any]) -> dict[str, Any]:
        return self._json("POST", self._path("pods"), manifest)

    def try_pod(self, manifest: dict[str, Any]) -> None:
        """Ask whether the cluster would accept the pod, without making it: rights, quota and every rule of admission."""
        self._json("POST", self._path("pods"), manifest, query={"dryRun": "All"})

    def pod(self, name: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotThere):
            return self._json("GET", self._path("pods", name))
        return None

    def pods(self, selector: str) -> dict[str, Any]:
        """The whole answer: its items, and the version from which a watch can follow."""
        return self._json("GET", self._path("pods"), query={"labelSelector": selector})

    def patch_pod(self, name: str, patch: dict[str, Any]) -> None:
        """Succeeds if the pod is gone. A patch that contains the uid of another pod of that name changes nothing."""
        with contextlib.suppress(NotThere, Conflict):
            self._json("PATCH", self._path("pods", name), patch, kind=MERGE)

    def delete_pod(self, name: str, uid: str, grace_s: int | None) -> None:
        """`grace_s` 0 removes the object at once, whatever its machine does; None leaves the time to the pod."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        with contextlib.suppress(NotThere, Conflict):
            self._json("DELETE", self._path("pods", name), options)

    def log(self, name: str, container: str, lines: int, most_bytes: int, limit_s: float) -> bytes:
        """The end of a container's log. It is read whole and its beginning dropped: the API can only cut at the end."""
        query = {"container": container, "tailLines": lines}
        with self._answer("GET", self._path("pods", name, "log"), query=query, limit_s=limit_s, stream=True) as answer:
            tail = b""
            for piece in answer.stream(PIECE):
                tail = (tail + piece)[-most_bytes:]
            return tail

    def watch_pods(
        self, selector: str, version: str, streams: list[Any], stopped: threading.Event
    ) -> Iterator[dict[str, Any]]:
        """Changes since `version`. Adds its connection to `streams` for `close_streams`, before which `stopped` is set."""
        query = {
            "labelSelector": selector,
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_S,
        }
        with self._answer("GET", self._path("pods"), query=query, limit_s=self._watch_silence_s, stream=True) as answer:
            streams.append(answer)
            if stopped.is_set():
                return
            rest = b""
            for piece in answer.stream(PIECE):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield dict(json.loads(line))

    def close_streams(self, streams: list[Any]) -> None:
        """Only their ends of the connection: the thread that reads from them notices, and closes them itself."""
        for stream in streams:
            with contextlib.suppress(*_FOREIGN, ValueError):
                stream.shutdown()

    # -- what pods need

    def create_secret(self, manifest: dict[str, Any]) -> None:
        """Succeeds if it exists: its name is chosen anew for every pod."""
        with contextlib.suppress(Conflict):
            self._json("POST", self._path("secrets"), manifest)

    def has_secret(self, name: str) -> bool:
        """For an account that may create secrets and not read them: asks to create it without doing so."""
        manifest = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": name}}
        try:
            self._json("POST", self._path("secrets"), manifest, query={"dryRun": "All"})
        except Conflict:
            return True
        return False

    def config_map(self, name: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotThere):
            return self._json("GET", self._path("configmaps", name))
        return None

    def create_config_map(self, manifest: dict[str, Any]) -> dict[str, Any]:
        return self._json("POST", self._path("configmaps"), manifest)

    def delete_config_map(self, name: str) -> None:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        with contextlib.suppress(NotThere):
            self._json("DELETE", self._path("configmaps", name), options)

    # -- the cluster

    def version(self) -> str:
        return str(self._json("GET", "/version").get("gitVersion", "unknown"))

    def quotas(self) -> list[dict[str, Any]]:
        return list(self._json("GET", self._path("resourcequotas")).get("items") or [])

    def nodes(self) -> list[dict[str, Any]]:
        """From the API server's cache: large clusters are listed often."""
        return list(self._json("GET", "/api/v1/nodes", query={"resourceVersion": "0"}).get("items") or [])

    def may(self, attributes: dict[str, str]) -> bool:
        """Whether our account has a right, by the cluster's own word."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = self._json("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool((answer.get("status") or {}).get("allowed"))

    def network_policies(self) -> list[dict[str, Any]]:
        path = f"/apis/networking.k8s.io/v1/namespaces/{self.namespace}/networkpolicies"
        return list(self._json("GET", path).get("items") or [])

    def close(self) -> None:
        if self._client is not None:
            self._client.rest_client.pool_manager.clear()

    # -- inside

    def _path(self, *parts: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/" + "/".join(parts)

    def _json(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        query: dict[str, Any] | None = None,
        kind: str = "application/json",
    ) -> dict[str, Any]:
        with self._answer(method, path, body, query=query, kind=kind, limit_s=self._limit_s) as answer:
            raw = answer.data
        try:
            return dict(json.loads(raw))
        except (ValueError, TypeError) as error:
            raise EngineUnreachable(
                f"Kubernetes at {self.address} answered with something that is no JSON object."
            ) from error

    @contextlib.contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        query: dict[str, Any] | None = None,
        kind: str = "application/json",
        limit_s: float,
        stream: bool = False,
    ) -> Iterator[Any]:
        """One request, within the limits of the socket. Nothing is repeated: who asks decides what an error means."""
        try:
            opened = self._open()
            headers = {"Accept": "application/json, */*", "Content-Type": kind, "User-Agent": "benchyard"}
            serialized = opened.param_serialize(method, path, header_params=headers, auth_settings=["BearerToken"])
            answer = opened.rest_client.pool_manager.request(
                method,
                serialized[1] + (f"?{urlencode(query)}" if query else ""),
                body=None if body is None else json.dumps(body),
                headers=serialized[2],
                preload_content=not stream,
                timeout=urllib3.Timeout(connect=min(limit_s, self._limit_s), read=limit_s),
                retries=False,
            )
            try:
                if answer.status >= 300:
                    raise error_of(answer.status, answer.data, self.address)
                yield answer
            finally:
                if stream:
                    answer.close()
        except EngineError:
            raise
        except _FOREIGN as error:
            raise EngineUnreachable(
                f"No Kubernetes API server answers at {self.address} ({type(error).__name__}: {str(error)[:300]}). "
                "Check BENCHYARD_KUBE_CONFIG, or whether the cluster is up."
            ) from error

    def _open(self) -> client.ApiClient:
        with self._connecting:
            if self._client is None:
                settings = client.Configuration()
                if self._kubeconfig is None and _is_in_cluster():
                    config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
                else:
                    given = None if self._kubeconfig is None else str(self._kubeconfig)
                    config.load_kube_config(  # type: ignore[no-untyped-call]
                        given, self._context, client_configuration=settings, persist_config=False
                    )
                settings.retries = False  # the client would repeat three times, each with the whole time limit
                settings.connection_pool_maxsize = self._connections
                self._client = client.ApiClient(settings)
                self._client.rest_client.pool_manager.connection_pool_kw["ssl_context"] = tls_context(
                    settings.ssl_ca_cert, verify=settings.verify_ssl
                )
                self.address = str(settings.host)
            return self._client


def tls_context(authority: str | None, *, verify: bool) -> ssl.SSLContext:
    """Verifies certificate and host name, but not the form of the authority's certificate: since Python 3.13 that is the
    default, and the authorities of many clusters lack fields which are then required."""
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verify else ssl.CERT_NONE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if authority is None:
        context.load_default_certs()
    return context


def _is_in_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and TOKEN.exists()
