"""Runs containers as pods of a Kubernetes cluster; implements `engines.engine`.

One bare pod per attempt. Nothing in the cluster restarts or repeats it: attempts are ours alone. Its name is the lock, and
its boot line is in a secret that belongs to it. `manifest` decides what is asked of Kubernetes, `facts` interprets its
answers, and calls of the API (`api`) run in a bounded number of threads, each with a time limit.

A pod is stopped by moving its deadline: the kubelet ends it and keeps exit code and log, which a deletion would take away.
If this process dies between pod and secret, the pod waits for a secret that never comes, since the token was only in
memory: `list` finds such pods (`boot_lines`), and the reconciler starts their runs again.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog

from orchestrator.engines.bounded_threads import BoundedThreads, Deadline, GivenUp, stream_from_thread
from orchestrator.engines.docker.guest_images import check_allowed
from orchestrator.engines.engine import (
    ENDED,
    ContainerFacts,
    ContainerState,
    ContainerStats,
    EngineError,
    EngineInfo,
    EngineUnreachable,
    LaunchRequest,
    Unguarded,
)
from orchestrator.engines.kubernetes.api import KubeApi
from orchestrator.engines.kubernetes.boot_lines import LOST, BootLines
from orchestrator.engines.kubernetes.checks import check_rights, missing_rights
from orchestrator.engines.kubernetes.cluster_view import ClusterView
from orchestrator.engines.kubernetes.config import KubeEngineConfig
from orchestrator.engines.kubernetes.errors import Conflict, NotThere, Refused, RightMissing
from orchestrator.engines.kubernetes.facts import is_lost, labels_in, never_starts, read_pod
from orchestrator.engines.kubernetes.manifest import (
    RUNNER,
    end_patch,
    instance_selector,
    owner_object,
    pod,
    runner_selector,
    secret,
    secret_of,
)
from orchestrator.engines.kubernetes.pod_changes import PodChanges
from orchestrator.engines.kubernetes.policy_probe import PolicyProbe
from orchestrator.engines.launch_rules import check_fits, check_ours, check_same_attempt, is_ours

T = TypeVar("T")
log = structlog.get_logger()

THREADS = 16
LOOK_S = 0.15
LOG_LIMIT_S = 5.0
"""A machine that does not answer must not hold up everybody else; the API server itself would wait for it much longer."""
LOG_BYTES = 1 << 20
CREATE_TRIES = 3
CLOSE_LIMIT_S = 3.0


def _now() -> datetime:
    return datetime.now(UTC)


def no_namespace(name: str) -> str:
    return f"There is no namespace {name}: apply deploy/kubernetes, or set BENCHYARD_KUBE_NAMESPACE to one that exists."


class KubernetesEngine:
    name = "kubernetes"

    def __init__(self, config: KubeEngineConfig, now: Callable[[], datetime] = _now) -> None:
        config.check()
        self.config = config
        self._now = now
        self._api = KubeApi(
            config.namespace,
            config.kubeconfig,
            config.context,
            connections=THREADS + 2,
            limit_s=config.socket_limit_s,
            watch_silence_s=config.watch_silence_s,
        )
        self._threads = BoundedThreads(THREADS, "kubernetes")
        self.probe = PolicyProbe(self._api, config, now)
        self._preparing = asyncio.Lock()
        self._owner_uid: str | None = None
        self._has_rights = False
        self._cluster = ClusterView(self._api, config)
        self._boot_lines = BootLines(self._api)
        self.strangers: tuple[str, ...] = ()
        """Pods with our instance's name that belong to another installation, as of the last `list`."""

    async def prepare(self) -> None:
        async with self._preparing:
            await self._call(self._prepare)
        if self.config.require_policy and (trouble := self.probe.trouble()) is not None:
            raise Unguarded(trouble)

    async def check(self) -> None:
        await self._call(lambda _: self._find_owner())
        if self.config.require_policy and (trouble := self.probe.trouble()) is not None:
            raise Unguarded(trouble)

    async def teardown(self) -> None:
        """Remove the object that owns our pods, and thereby whatever is left of them."""

        def remove(_: Deadline) -> None:
            with contextlib.suppress(RightMissing):  # this right is optional
                self._api.delete_config_map(self.config.owner_name)
            self._owner_uid = None

        await self._call(remove)

    async def info(self) -> EngineInfo:
        return await self._call(lambda _: self._cluster.info(self.name, self.probe.verdict))

    async def launch(self, request: LaunchRequest) -> ContainerFacts:
        if request.guest is not None:
            check_allowed(request.guest, request.image, self.config.guest_images)
        return await self._call(lambda deadline: self._launch(request, deadline))

    async def list(self) -> list[ContainerFacts]:
        facts, strangers = await self._call(self._list)
        if strangers and not self.strangers:
            log.warning(
                "pods of another installation with the name of this instance are left alone",
                action="strangers",
                instance=self.config.instance,
                containers=strangers,
            )
        self.strangers = tuple(sorted(strangers))
        return facts

    async def inspect(self, name: str) -> ContainerFacts | None:
        found = await self._get(name)
        return read_pod(found, self._now()) if found else None

    async def stop(self, name: str, *, grace_s: float) -> None:
        await self._end(name, max(grace_s, self.config.grace_s) + self.config.call_limit_s)

    async def kill(self, name: str) -> None:
        await self._end(name, self.config.call_limit_s)

    async def remove(self, name: str) -> None:
        found = await self._ours(name)
        if found is None:
            return
        if read_pod(found, self._now()).state not in ENDED:
            await self._end(name, self.config.call_limit_s)
            found = await self._get(name)
            if found is None:
                return
            if read_pod(found, self._now()).state not in ENDED:
                raise EngineError(f"Pod {name} was told to end and has not; it was not removed.")
        uid = str(found["metadata"]["uid"])
        await self._call(lambda _: self._api.delete_pod(name, uid, 0))

    async def logs(self, name: str, *, tail_bytes: int) -> bytes:
        if tail_bytes <= 0:
            return b""
        return await self._call(lambda _: self._read_log(name, min(tail_bytes, LOG_BYTES)))

    async def stats(self, name: str) -> ContainerStats | None:
        """The API has no counters; runners report their own usage."""
        return None

    def watch(self) -> AsyncIterator[str]:
        streams: list[Any] = []
        changes = PodChanges(self._api, instance_selector(self.config), self._now)
        return stream_from_thread(
            lambda: changes.names(streams), lambda: changes.stop(streams), quiet=(EngineError, ValueError, OSError)
        )

    async def close(self) -> None:
        if self.probe.unread is not None:
            with contextlib.suppress(EngineError, TimeoutError):
                await self._threads.call(lambda _: self.probe.withdraw(), limit_s=CLOSE_LIMIT_S)
        self._threads.close()
        self._api.close()

    # -- inside

    async def _call(self, function: Callable[[Deadline], T]) -> T:
        limit_s = self.config.call_limit_s
        try:
            return await self._threads.call(function, limit_s=limit_s)
        except TimeoutError as error:
            raise EngineUnreachable(f"Kubernetes at {self._api.address} did not answer within {limit_s:g} s.") from error

    async def _get(self, name: str) -> dict[str, Any] | None:
        return await self._call(lambda _: self._api.pod(name))

    async def _ours(self, name: str) -> dict[str, Any] | None:
        found = await self._get(name)
        if found is not None:
            check_ours(labels_in(found), name, self.config.instance, self.config.owner)
        return found

    async def _end(self, name: str, limit_s: float) -> None:
        """End the pod and wait for it. Whoever asked looks afterwards whether it has ended: a machine may be silent."""
        end = time.monotonic() + limit_s - 0.5
        found = await self._ours(name)
        uid = str(found["metadata"]["uid"]) if found else ""
        told: set[ContainerState] = set()
        while found is not None and found["metadata"]["uid"] == uid:
            facts = read_pod(found, self._now())
            if facts.state in ENDED:
                return
            if is_lost(found, self._now()) or never_starts(found, self._now()):
                await self._call(lambda _: self._api.delete_pod(name, uid, 0))
                return
            if facts.state not in told:
                told.add(facts.state)
                await self._call(lambda _, state=facts.state: self._tell(name, uid, state))  # type: ignore[misc]
            if time.monotonic() > end:
                return
            await asyncio.sleep(LOOK_S)
            found = await self._get(name)

    # -- run in the threads

    def _tell(self, name: str, uid: str, state: ContainerState) -> None:
        """A pod that waits has nothing to keep, and a deadline would do nothing for one without a machine."""
        if state is ContainerState.WAITING:
            self._api.delete_pod(name, uid, None)
        else:
            self._api.patch_pod(name, end_patch(uid, self._now().isoformat()))

    def _prepare(self, deadline: Deadline) -> None:
        if not self._has_rights:
            trouble = missing_rights(check_rights(self._api.may, self.config.namespace))
            if trouble is not None:
                raise EngineError(trouble)
            self._has_rights = True
        deadline.check()
        owner_uid = self._find_owner()
        address = self._address()
        deadline.check()
        self.probe.step(owner_uid, address)

    def _find_owner(self) -> str:
        """The uid of the object that owns our pods. An operator may have deleted it since the last look."""
        owner = self._api.config_map(self.config.owner_name)
        if owner is None:
            try:
                owner = self._api.create_config_map(owner_object(self.config))
            except Conflict:
                owner = self._api.config_map(self.config.owner_name)
            except NotThere as error:
                raise EngineError(no_namespace(self.config.namespace)) from error
        if owner is None:
            raise EngineUnreachable(f"ConfigMap {self.config.owner_name} appears and disappears.")
        self._owner_uid = str(owner["metadata"]["uid"])
        return self._owner_uid

    def _address(self) -> str | None:
        """The address at which pods reach us."""
        host = self.config.runner_address
        if host is None:
            return None
        try:
            return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
        except OSError as error:
            raise EngineError(
                f"The address {host}, at which runners should reach this service, cannot be looked up ({error}): "
                "set BENCHYARD_KUBE_RUNNER_ADDRESS to a service or an address that pods can reach."
            ) from error

    def _list(self, deadline: Deadline) -> tuple[builtins.list[ContainerFacts], builtins.list[str]]:
        """Our pods, and the names of those that belong to another installation."""
        items = self._api.pods(runner_selector(self.config)).get("items") or []
        now = self._now()
        ours = [
            (listed, read_pod(listed, now))
            for listed in items
            if is_ours(labels_in(listed), self.config.instance, self.config.owner)
        ]
        lost = self._boot_lines.lost(ours, now, deadline)
        facts = [replace(one, boot_line_lost=True, detail=LOST) if one.name in lost else one for _, one in ours]
        names = {one.name for one in facts}
        return facts, [name for listed in items if (name := str(listed["metadata"]["name"])) not in names]

    def _launch(self, request: LaunchRequest, deadline: Deadline) -> ContainerFacts:
        check_fits(request.instance_type, self._cluster.cpus())
        owner_uid, address = self._owner_uid or self._find_owner(), self._address()
        made = self._create(request, owner_uid, address, deadline)
        facts = read_pod(made, self._now())
        name = secret_of(made)
        if facts.state is not ContainerState.WAITING or name is None:
            return facts
        try:
            deadline.check()
            self._api.create_secret(secret(request, self.config, name, facts.container_id))
            self._boot_lines.written(facts.container_id, self._now())
        except (EngineError, GivenUp):
            with contextlib.suppress(EngineError):
                self._api.delete_pod(request.name, facts.container_id, 0)
            raise
        return facts

    def _create(self, request: LaunchRequest, owner_uid: str, address: str | None, deadline: Deadline) -> dict[str, Any]:
        """The new pod, or the one that an earlier launch of the same attempt has made."""
        for _ in range(CREATE_TRIES):
            deadline.check()
            manifest = pod(
                request,
                self.config,
                owner_uid=owner_uid,
                address=address,
                secret=f"{request.name}-{secrets.token_hex(4)}",
            )
            try:
                return self._api.create_pod(manifest)
            except NotThere as error:
                raise EngineError(no_namespace(self.config.namespace)) from error
            except Conflict:
                existing = self._api.pod(request.name)
            if existing is not None:
                check_same_attempt(labels_in(existing), request, self.config.instance, self.config.owner)
                return existing
            # A quota was being counted by somebody else at the same time, or the pod has just been removed.
        raise EngineUnreachable(f"Pod {request.name} could not be made: others changed the namespace at the same time.")

    def _read_log(self, name: str, tail_bytes: int) -> bytes:
        lines = max(1000, tail_bytes // 8)
        try:
            return self._api.log(name, RUNNER, lines, tail_bytes, LOG_LIMIT_S)
        except NotThere:
            return b""
        except Refused as error:
            if error.status == 400:  # it has not started
                return b""
            raise
        except EngineUnreachable:
            self._api.pod(name)  # raises if the API server is silent; otherwise only the pod's machine is
            return b""
