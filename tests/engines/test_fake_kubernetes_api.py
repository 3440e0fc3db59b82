"""The fake API server answers as the real one does: refusals, preconditions, watches; and breaks as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.engines.fake_kubernetes.api_server.access import right
from tests.engines.fake_kubernetes.api_server.faults import Fault, Harm
from tests.engines.fake_kubernetes.api_server.watches import Order
from tests.engines.fake_kubernetes.cluster import FakeCluster
from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.pods import CONFIG_MAPS, IMAGE, MERGE, PODS, SECRETS, client_of, shell_pod, wait_for

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(second_s=0.05) as cluster:
        cluster.images.present.add(IMAGE)
        cluster.scheduler.paused = True
        yield cluster


@pytest.fixture
def api(cluster: FakeCluster) -> Iterator[httpx.Client]:
    with client_of(cluster) as client:
        yield client


def refusal(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", answer.status_code)
    return answer.status_code, body["reason"]


# -- refusals


def test_names_are_the_lock(api: httpx.Client) -> None:
    first = api.post(PODS, json=shell_pod("a"))
    second = api.post(PODS, json=shell_pod("a"))
    assert (first.status_code, refusal(second)) == (201, (409, "AlreadyExists"))
    assert second.json()["message"] == 'pods "a" already exists'
    assert api.get(f"{PODS}/a").json()["metadata"]["uid"] == first.json()["metadata"]["uid"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({"name": "-a"}, "metadata.name"),
        ({"labels": {"run": "x" * 64}}, "metadata.labels"),
        ({"labels": {"run": "two words"}}, "metadata.labels"),
    ],
)
def test_what_is_invalid_is_refused(api: httpx.Client, change: dict[str, Any], field: str) -> None:
    body = shell_pod("a")
    body["metadata"] |= change
    answer = api.post(PODS, json=body)
    assert refusal(answer) == (422, "Invalid")
    assert field in answer.json()["message"]


def test_deletion_keeps_to_the_precondition(api: httpx.Client) -> None:
    uid = api.post(PODS, json=shell_pod("a")).json()["metadata"]["uid"]
    other = api.request("DELETE", f"{PODS}/a", json={"preconditions": {"uid": "another"}})
    assert refusal(other) == (409, "Conflict")
    assert "the UID in the precondition (another) does not match the UID in record" in other.json()["message"]
    assert api.request("DELETE", f"{PODS}/a", json={"preconditions": {"uid": uid}}).status_code == 200
    assert refusal(api.delete(f"{PODS}/a")) == (404, "NotFound")


def test_of_a_pod_only_little_may_change(api: httpx.Client) -> None:
    made = api.post(PODS, json=shell_pod("a", activeDeadlineSeconds=100)).json()
    patches = {
        "lower deadline": {"spec": {"activeDeadlineSeconds": 50}},
        "annotation": {"metadata": {"annotations": {"a": "b"}, "uid": made["metadata"]["uid"]}},
        "higher deadline": {"spec": {"activeDeadlineSeconds": 60}},
        "other field": {"spec": {"hostname": "x"}},
        "wrong uid": {"metadata": {"uid": "another"}},
        "old version": {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {"x": "y"}}},
    }
    codes = {why: api.patch(f"{PODS}/a", json=patch, headers=MERGE).status_code for why, patch in patches.items()}
    assert list(codes.values()) == [200, 200, 422, 422, 422, 409], codes
    assert api.patch(f"{PODS}/a", json={}, headers={"content-type": "text/plain"}).status_code == 415
    sneaky = {"status": {"phase": "Succeeded"}}
    assert api.patch(f"{PODS}/a", json=sneaky, headers=MERGE).json()["status"]["phase"] == "Pending"


def test_an_immutable_secret_stays(api: httpx.Client) -> None:
    api.post(SECRETS, json={"metadata": {"name": "s"}, "immutable": True, "stringData": {"a": "b"}})
    assert api.get(f"{SECRETS}/s").json()["data"] == {"a": "Yg=="}
    assert refusal(api.patch(f"{SECRETS}/s", json={"data": {"a": "Yw=="}}, headers=MERGE)) == (422, "Invalid")


def test_other_refusals(cluster: FakeCluster, api: httpx.Client) -> None:
    assert refusal(api.post("/api/v1/namespaces/none/pods", json=shell_pod("a"))) == (404, "NotFound")
    assert api.get("/api/v1/namespaces/none/pods").json()["items"] == []
    assert refusal(api.get("/api/v1/namespaces/runners/unknown")) == (404, "NotFound")
    assert refusal(api.get(f"{PODS}/none/log")) == (404, "NotFound")
    assert refusal(api.get("/apis/metrics.k8s.io/v1beta1/namespaces/runners/pods")) == (404, "NotFound")
    api.post(PODS, json=shell_pod("a"))
    log = api.get(f"{PODS}/a/log")
    assert (log.status_code, log.text) == (200, ""), "a pod without a node has an empty log"


def test_a_dry_run_changes_nothing(api: httpx.Client) -> None:
    answer = api.post(PODS, json=shell_pod("a"), params={"dryRun": "All"})
    assert (answer.status_code, answer.json()["spec"]["schedulerName"]) == (201, "default-scheduler")
    assert api.get(f"{PODS}/a").status_code == 404


def test_rights(cluster: FakeCluster, api: httpx.Client) -> None:
    cluster.access.rights = [right("pods", "get", namespace="runners"), right("pods/log", "get", namespace="runners")]
    answer = api.get(PODS)
    assert refusal(answer) == (403, "Forbidden")
    words = 'cannot list resource "pods" in API group "" in the namespace "runners"'
    assert answer.json()["message"].endswith(words)
    assert api.get(f"{PODS}/a").status_code == 404, "may ask, and there is none"
    asked = {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "runners"}
    allowed = [
        api.post(REVIEWS, json={"spec": {"resourceAttributes": attributes}}).json()["status"]["allowed"]
        for attributes in (asked, {**asked, "verb": "create"}, {**asked, "namespace": "other"})
    ]
    assert allowed == [True, False, False]
    cluster.access.token = "renewed"
    assert refusal(api.get(f"{PODS}/a")) == (401, "Unauthorized")


# -- lists and watches


def test_lists_select_and_page(api: httpx.Client) -> None:
    for number in range(3):
        api.post(CONFIG_MAPS, json={"metadata": {"name": f"m{number}", "labels": {"n": str(number), "run": "yes"}}})
    names = {
        selector: [
            item["metadata"]["name"] for item in api.get(CONFIG_MAPS, params={"labelSelector": selector}).json()["items"]
        ]
        for selector in ("n=1", "n!=1", "n in (0, 2)", "n notin (0,2)", "run", "!run", "run,n=2")
    }
    assert list(names.values()) == [["m1"], ["m0", "m2"], ["m0", "m2"], ["m1"], ["m0", "m1", "m2"], [], ["m2"]]
    page = api.get(CONFIG_MAPS, params={"limit": 2}).json()
    rest = api.get(CONFIG_MAPS, params={"limit": 2, "continue": page["metadata"]["continue"]}).json()
    assert [len(page["items"]), len(rest["items"]), "continue" in rest["metadata"]] == [2, 1, False]
    assert page["kind"] == "ConfigMapList"
    assert "kind" not in page["items"][0]


class Watcher:
    """A watch that is read in a thread of its own."""

    def __init__(self, api: httpx.Client, **params: object) -> None:
        self.events: list[dict[str, Any]] = []
        self.end: str | None = None
        self._thread = threading.Thread(target=self._read, args=(api, params), daemon=True)
        self._thread.start()

    def _read(self, api: httpx.Client, params: dict[str, Any]) -> None:
        try:
            with api.stream("GET", CONFIG_MAPS, params={"watch": "1", **params}) as answer:
                for line in answer.iter_lines():
                    self.events.append(json.loads(line))
            self.end = "ended"
        except ValueError:
            self.end = "half a line"
        except httpx.TransportError as error:
            self.end = type(error).__name__

    def kinds(self) -> list[tuple[str, str]]:
        return [(one["type"], one["object"]["metadata"].get("name", "")) for one in self.events]

    def join(self) -> str | None:
        self._thread.join()
        return self.end


def make(api: httpx.Client, name: str, **labels: str) -> None:
    api.post(CONFIG_MAPS, json={"metadata": {"name": name, "labels": labels}})


def test_a_watch_follows_a_list(cluster: FakeCluster, api: httpx.Client) -> None:
    make(api, "before", run="yes")
    version = api.get(CONFIG_MAPS).json()["metadata"]["resourceVersion"]
    make(api, "between", run="yes")
    watcher = Watcher(api, resourceVersion=version, labelSelector="run", allowWatchBookmarks="true")
    wait_for(lambda: cluster.api.watches.count, "the watch is open")
    make(api, "other")
    make(api, "after", run="yes")
    api.patch(f"{CONFIG_MAPS}/after", json={"metadata": {"labels": {"more": "x"}}}, headers=MERGE)
    api.patch(f"{CONFIG_MAPS}/after", json={"metadata": {"labels": {"run": None}}}, headers=MERGE)
    api.delete(f"{CONFIG_MAPS}/between")
    wait_for(lambda: len(watcher.events) == 5, "five events")
    cluster.api.watches.tell(Order.BOOKMARK)
    cluster.api.watches.tell(Order.BOOKMARK)
    wait_for(lambda: len(watcher.events) >= 6, "a bookmark")
    cluster.api.watches.tell(Order.END)
    assert watcher.join() == "ended"
    assert watcher.kinds()[:5] == [
        ("ADDED", "between"),
        ("ADDED", "after"),
        ("MODIFIED", "after"),
        ("DELETED", "after"),
        ("DELETED", "between"),
    ]
    assert watcher.events[5]["type"] == "BOOKMARK"
    assert (
        watcher.events[5]["object"]["metadata"]["resourceVersion"]
        == api.get(CONFIG_MAPS).json()["metadata"]["resourceVersion"]
    )


def test_a_watch_from_an_old_version_is_told_410(cluster: FakeCluster, api: httpx.Client) -> None:
    cluster.store.compact()
    watcher = Watcher(api, resourceVersion="1")
    assert watcher.join() == "ended"
    assert [(one["type"], one["object"]["code"], one["object"]["reason"]) for one in watcher.events] == [
        ("ERROR", 410, "Expired")
    ]


@pytest.mark.parametrize(
    ("order", "end", "last"),
    [
        (Order.EXPIRE, "ended", "ERROR"),
        (Order.CUT, "RemoteProtocolError", "ADDED"),
        (Order.CUT_WITHIN, "RemoteProtocolError", "ADDED"),
    ],
)
def test_open_watches_can_be_broken(cluster: FakeCluster, api: httpx.Client, order: Order, end: str, last: str) -> None:
    make(api, "a")
    watcher = Watcher(api)
    wait_for(lambda: watcher.events, "what exists is told first")
    cluster.api.watches.tell(order)
    assert watcher.join() == end
    assert watcher.events[-1]["type"] == last


def test_a_half_open_watch_is_silent(cluster: FakeCluster, api: httpx.Client) -> None:
    cluster.api.watches.silent = True
    version = api.get(CONFIG_MAPS).json()["metadata"]["resourceVersion"]
    watcher = Watcher(api, resourceVersion=version)
    wait_for(lambda: cluster.api.watches.count, "the watch is open")
    make(api, "a")
    with client_of(cluster) as other:
        assert len(other.get(CONFIG_MAPS).json()["items"]) == 1
    assert watcher.events == []
    cluster.server.down()
    watcher.join()


# -- faults


@pytest.mark.parametrize("harm", [Harm.REQUEST_LOST, Harm.ANSWER_LOST, Harm.HALF_ANSWER])
def test_connections_are_cut_before_and_after_the_work(cluster: FakeCluster, api: httpx.Client, harm: Harm) -> None:
    cluster.faults.add(Fault(harm, "POST", times=1))
    with pytest.raises(httpx.RemoteProtocolError):
        api.post(PODS, json=shell_pod("a"))
    assert (cluster.pod("a") is not None) is (harm is not Harm.REQUEST_LOST)
    assert api.post(PODS, json=shell_pod("b")).status_code == 201


def test_answers_can_be_nonsense_late_or_refusals(cluster: FakeCluster, api: httpx.Client) -> None:
    cluster.faults.add(Fault(Harm.NONSENSE, "GET .*/pods$", times=1))
    with pytest.raises(ValueError, match="Expecting value"):
        api.get(PODS).json()
    late = cluster.faults.add(Fault(Harm.HANGS, "GET .*/pods$", times=1))
    with pytest.raises(httpx.ReadTimeout):
        api.get(PODS, timeout=0.1)
    late.release()
    cluster.faults.refuse(answers.too_many_requests(7), skip=1, times=1)
    assert api.get(PODS).status_code == 200
    busy = api.get(PODS)
    assert (refusal(busy), busy.headers["Retry-After"]) == ((429, "TooManyRequests"), "7")
    assert api.get(PODS).status_code == 200
    cluster.faults.refuse(answers.internal_error("etcdserver: request timed out"), "GET")
    assert refusal(api.get(PODS)) == (500, "InternalError")
    cluster.faults.clear()
    assert api.get(PODS).status_code == 200
    assert cluster.faults.requests[-1] == f"GET {PODS}"


def test_a_server_that_is_down_and_up_again(cluster: FakeCluster, api: httpx.Client) -> None:
    api.post(PODS, json=shell_pod("a"))
    watcher = Watcher(api)
    wait_for(lambda: cluster.api.watches.count, "the watch is open")
    cluster.server.down()
    assert watcher.join() == "RemoteProtocolError"
    with pytest.raises(httpx.TransportError):
        api.get(PODS)
    with pytest.raises(httpx.ConnectError):
        api.get(PODS)
    cluster.server.up()
    assert api.get(f"{PODS}/a").status_code == 200
