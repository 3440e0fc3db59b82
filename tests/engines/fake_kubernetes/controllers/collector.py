"""The garbage collector: removes objects whose owners are all gone."""

from __future__ import annotations

from datetime import datetime

from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.objects.pod_end import delete_pod
from tests.engines.fake_kubernetes.objects.resources import BY_KIND, PODS
from tests.engines.fake_kubernetes.objects.store import Store


class Collector:
    def __init__(self, store: Store, flavour: Flavour) -> None:
        self._store = store
        self._flavour = flavour
        self.paused = False

    def collect(self, now: datetime) -> None:
        if self.paused:
            return
        for resource, item in [*self._store.everything()]:
            meta = item["metadata"]
            owners = meta.get("ownerReferences") or []
            if not owners or any(self._exists(owner, meta.get("namespace")) for owner in owners):
                continue
            if resource is PODS:
                if "deletionTimestamp" not in meta:
                    pod = self._store.need(PODS, meta["namespace"], meta["name"])
                    delete_pod(self._store, pod, None, now, self._flavour)
            else:
                self._store.delete(resource, meta.get("namespace"), meta["name"], meta["uid"])

    def _exists(self, owner: dict[str, str], namespace: str | None) -> bool:
        resource = BY_KIND.get((owner["apiVersion"], owner["kind"]))
        if resource is None:
            return True
        found = self._store.get(resource, namespace if resource.namespaced else None, owner["name"])
        return found is not None and found["metadata"]["uid"] == owner["uid"]
