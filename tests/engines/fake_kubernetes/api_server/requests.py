"""What the API server does with a request: rights, admission, the store, and answers in its form. Knows no sockets."""

from __future__ import annotations

import base64
import copy
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.engines.fake_kubernetes.api_server.access import Access
from tests.engines.fake_kubernetes.api_server.patches import patched
from tests.engines.fake_kubernetes.api_server.pod_logs import pod_log, pod_metrics
from tests.engines.fake_kubernetes.api_server.pod_rules import check_meta, check_pod, check_update, fill_pod
from tests.engines.fake_kubernetes.api_server.quota import check_quota
from tests.engines.fake_kubernetes.api_server.selectors import selects
from tests.engines.fake_kubernetes.api_server.watches import Watch, Watches
from tests.engines.fake_kubernetes.controllers.queue import Queue
from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.nodes.kubelet import Kubelet
from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.objects.answers import Json, Refusal
from tests.engines.fake_kubernetes.objects.pod_end import Disruption, delete_pod
from tests.engines.fake_kubernetes.objects.resources import (
    ACCESS_REVIEWS,
    POD_METRICS,
    PODS,
    PRIORITY_CLASSES,
    SECRETS,
    Resource,
    Target,
    read_path,
)
from tests.engines.fake_kubernetes.objects.store import Store

_NAMESPACES = read_path("/api/v1/namespaces").resource


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = "application/json"
    authorization: str | None = None


@dataclass(frozen=True)
class Answer:
    status: int
    body: Json | bytes | Iterator[bytes]
    headers: dict[str, str] = field(default_factory=dict)


def _verb(request: Request, target: Target) -> str:
    if request.method == "GET" and target.name is None:
        return "watch" if request.query.get("watch") in ("1", "true") else "list"
    if request.method == "DELETE" and target.name is None:
        return "deletecollection"
    return {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[request.method]


def _bare(item: Json) -> Json:
    """Items of a list do not repeat their kind."""
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


class Api:
    def __init__(self, store: Store, access: Access, kubelets: dict[str, Kubelet], queue: Queue, flavour: Flavour) -> None:
        self.watches = Watches(store)
        self.metrics = False
        """Whether the cluster has a metrics server."""
        self.lost_node_log: Callable[[], None] = lambda: None
        """Called while somebody waits for the log of a node that does not answer."""
        self._store = store
        self._access = access
        self._kubelets = kubelets
        self._queue = queue
        self._flavour = flavour

    def answer(self, request: Request) -> Answer:
        try:
            self._access.authenticate(request.authorization)
            if request.path == "/version":
                return Answer(200, self._version())
            if request.path in ("/readyz", "/livez", "/healthz"):
                return Answer(200, b"ok")
            return self._answer(request, read_path(request.path))
        except Refusal as refusal:
            return Answer(refusal.code, refusal.body(), refusal.headers)

    def _version(self) -> Json:
        return {"major": "1", "minor": str(self._flavour.minor), "gitVersion": self._flavour.git_version}

    def _answer(self, request: Request, target: Target) -> Answer:
        verb, resource = _verb(request, target), target.resource
        if resource is ACCESS_REVIEWS:
            return Answer(201, self._access.review(request.body))
        self._access.authorise(verb, target.right, target.namespace, target.name)
        if resource is POD_METRICS:
            return Answer(200, self._metrics(target))
        if target.part is not None:
            return self._part(request, target)
        if verb == "watch":
            return Answer(200, self._watch(request, target))
        with self._store.changed:
            match verb:
                case "get":
                    return Answer(200, self._store.need(resource, target.namespace, target.name or ""))
                case "list":
                    return Answer(200, self._list(request, target))
                case "create":
                    return Answer(201, self._create(request, target))
                case "update" | "patch":
                    return Answer(200, self._change(request, target))
                case "delete":
                    return Answer(200, self._delete(request, target))
        return Answer(200, self._delete_all(request, target))

    # -- reading

    def _list(self, request: Request, target: Target) -> Json:
        wanted = selects(request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""))
        items = [item for item in self._store.all(target.resource, target.namespace) if wanted(item)]
        meta: Json = {"resourceVersion": str(self._store.revision)}
        if limit := int(request.query.get("limit", 0)):
            start = int(base64.b64decode(request.query.get("continue", "")) or 0)
            rest = len(items) - start - limit
            items = items[start : start + limit]
            if rest > 0:
                token = base64.b64encode(str(start + limit).encode()).decode()
                meta |= {"continue": token, "remainingItemCount": rest}
        kind = f"{target.resource.kind}List"
        return {
            "kind": kind,
            "apiVersion": target.resource.api_version,
            "metadata": meta,
            "items": [_bare(one) for one in items],
        }

    def _watch(self, request: Request, target: Target) -> Iterator[bytes]:
        query = request.query
        watch = Watch(
            resource=target.resource,
            namespace=target.namespace,
            wanted=selects(query.get("labelSelector", ""), query.get("fieldSelector", "")),
            revision=int(query.get("resourceVersion") or 0),
            bookmarks=query.get("allowWatchBookmarks") in ("1", "true"),
            timeout_s=float(query["timeoutSeconds"]) if "timeoutSeconds" in query else None,
        )
        return self.watches.stream(watch)

    def _metrics(self, target: Target) -> Json:
        if not self.metrics:
            raise answers.no_such_path()
        with self._store.changed:
            if target.name is None:
                pods = self._store.all(PODS, target.namespace)
                measured = [one for pod in pods if (one := pod_metrics(pod, self._kubelets))]
                return {"kind": "PodMetricsList", "apiVersion": POD_METRICS.api_version, "metadata": {}, "items": measured}
            pod = self._store.get(PODS, target.namespace, target.name)
            measured_pod = pod_metrics(pod, self._kubelets) if pod else None
            if measured_pod is None:
                raise answers.not_found("podmetrics.metrics.k8s.io", f"{target.namespace}/{target.name}")
            return measured_pod

    # -- writing

    def _create(self, request: Request, target: Target) -> Json:
        resource, item = target.resource, copy.deepcopy(request.body)
        meta = item.setdefault("metadata", {})
        item |= {"kind": resource.kind, "apiVersion": resource.api_version}
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + "".join(random.choices(string.ascii_lowercase, k=5))
        check_meta(resource.kind, item)
        if resource.namespaced:
            if meta.setdefault("namespace", target.namespace) != target.namespace:
                words = "the namespace of the provided object does not match the namespace sent on the request"
                raise answers.bad_request(words)
            namespace = self._store.need(_NAMESPACES, None, target.namespace or "")
            if (namespace.get("status") or {}).get("phase") == "Terminating":
                why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
                raise answers.forbidden(resource.qualified, meta["name"], why)
        if self._store.get(resource, target.namespace, meta["name"]) is not None:
            raise answers.already_exists(resource.qualified, meta["name"])
        self._admit(resource, item)
        return item if request.query.get("dryRun") else self._store.create(resource, item)

    def _admit(self, resource: Resource, item: Json) -> None:
        if resource is SECRETS:
            item.setdefault("type", "Opaque")
            plain = item.pop("stringData", {})
            item.setdefault("data", {}).update(
                {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
            )
        if resource is PODS:
            check_pod(item)
            self._queue.hold(item)
            fill_pod(item, self._priority(item), self._flavour)
            check_quota(self._store, item)

    def _priority(self, pod: Json) -> int:
        name = pod["spec"].get("priorityClassName")
        if not name:
            return 0
        found = self._store.get(PRIORITY_CLASSES, None, name)
        if found is None:
            why = f"no PriorityClass with name {name} was found"
            raise answers.forbidden("pods", pod["metadata"]["name"], why)
        return int(found["value"])

    def _change(self, request: Request, target: Target) -> Json:
        resource = target.resource
        before = self._store.need(resource, target.namespace, target.name or "")
        after = request.body if request.method == "PUT" else patched(before, request.body, request.content_type)
        check_meta(resource.kind, after)
        if resource is PODS:
            check_update(before, after)
            after["status"] = before["status"]
            if "generation" in before["metadata"] and after["spec"] != before["spec"]:
                after["metadata"]["generation"] = before["metadata"]["generation"] + 1
        if resource is SECRETS and before.get("immutable") and before.get("data") != after.get("data"):
            why = "Forbidden: field is immutable when `immutable` is set"
            raise answers.invalid("Secret", target.name or "", "data", why)
        return after if request.query.get("dryRun") else self._store.update(resource, after)

    def _delete(self, request: Request, target: Target) -> Json:
        resource, name = target.resource, target.name or ""
        item = self._store.need(resource, target.namespace, name)
        options = request.body or {}
        uid = (options.get("preconditions") or {}).get("uid")
        if uid is not None and uid != item["metadata"]["uid"]:
            raise answers.wrong_uid(resource.kind, name, uid, item["metadata"]["uid"])
        if request.query.get("dryRun"):
            return item
        if resource is PODS:
            grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
            grace_s = None if grace is None else int(grace)
            return delete_pod(self._store, item, grace_s, self._store.now(), self._flavour, uid=uid)
        self._store.delete(resource, target.namespace, name)
        return answers.success(resource.qualified, name, item["metadata"]["uid"])

    def _delete_all(self, request: Request, target: Target) -> Json:
        deleted = self._list(request, target)
        for item in deleted["items"]:
            meta = item["metadata"]
            self._delete(request, Target(target.resource, meta.get("namespace"), meta["name"]))
        return deleted

    # -- parts of objects

    def _part(self, request: Request, target: Target) -> Answer:
        match target.resource, target.part, request.method:
            case resource, "log", "GET" if resource is PODS:
                pod = self._store.need(PODS, target.namespace, target.name or "")
                return Answer(200, pod_log(pod, request.query, self._kubelets, self.lost_node_log))
            case resource, "eviction", "POST" if resource is PODS:
                why = Disruption("EvictionByEvictionAPI", "Eviction API: evicting")
                with self._store.changed:
                    pod = self._store.need(PODS, target.namespace, target.name or "")
                    delete_pod(self._store, pod, None, self._store.now(), self._flavour, why)
                return Answer(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
            case resource, "status", "GET":
                return Answer(200, self._store.need(resource, target.namespace, target.name or ""))
        raise answers.no_such_path()
