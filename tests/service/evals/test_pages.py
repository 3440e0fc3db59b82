"""Pages of evals and jobs: forms that work without script, hostile texts that stay texts, what a scope does not see."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from tests.served import Service
from tests.service.dashboard.hostile_texts import EVERYTHING, assert_harmless
from tests.service.dashboard.test_pages import SAME, browser
from tests.service.evals.eval_runner import EvalRunner, executed, generated, job_done, with_traces

pytestmark = pytest.mark.anyio


async def opened(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.text[:500]}"
    assert_harmless(answer.text)
    return answer.text


async def test_the_whole_story_by_forms(service: Service) -> None:
    service.engine.behaviour = EvalRunner()
    async with browser(service) as client:
        assert "No eval sets yet" in await opened(client, "/eval-sets")
        assert "No jobs yet" in await opened(client, "/jobs")
        answer = await client.post("/eval-sets", data={"name": "forms", "description": "It helps."})
        place = answer.headers["location"]
        set_id = place.rpartition("/")[2]
        assert "already" in (await client.post("/eval-sets", data={"name": "forms"})).text
        body = "".join(
            json.dumps({"id": f"t{n}", "input": "q", "output": "yes" if n % 2 else "I don't know."}) + "\n" for n in range(8)
        )
        await service.client.post("/api/traces", content=body)
        # Labelling goes to the next one without a label; undone, it comes again
        seen = []
        while found := re.search(r'data-trace="(t\d)" data-number="(\d+)"', await opened(client, f"{place}/label")):
            trace, number = found.groups()
            seen.append(trace)
            rating = "positive" if int(trace[1]) % 2 else "negative"
            form = {"trace_id": trace, "number": number, "show": "none", "rating": rating, "note": f"of {trace}"}
            assert (await client.post(f"{place}/label", data=form)).status_code == 303
        assert seen == [f"t{n}" for n in range(8)]
        assert "All traces are labelled" in await opened(client, f"{place}/label")
        await client.post(f"{place}/label", data={"trace_id": "t3", "rating": "forget"})
        assert 'data-trace="t3"' in await opened(client, f"{place}/label?after=99")
        assert "of t2" in await opened(client, f"{place}?show=negative")
        assert "No trace matches" in await opened(client, f"{place}?text=nothing+like+this")
        # An eval is written, executed, contradicted and decided
        assert "4 training traces, 3 held out" in await opened(client, f"{place}/generate")
        asked = await client.post(
            f"{place}/generate", data={"model": "demo-strong", "name": "forms", "target_accuracy": "90"}
        )
        job_id = asked.headers["location"].rpartition("/")[2]
        await job_done(service, job_id, "completed")
        assert "saved: 3 / 3 held-out" in await opened(client, f"/jobs/{job_id}")
        assert "<h1>eval written by demo-strong</h1>" in await opened(client, f"/runs/{job_id}")
        (row,) = (await service.client.get("/api/evals", params={"eval_set_id": set_id})).json()["items"]
        eval_place = f"/evals/{row['id']}"
        assert (await client.post(f"{eval_place}/execute", data={"what": "new"})).status_code == 303
        (run,) = (await service.client.get("/api/jobs", params={"eval_id": row["id"], "type": "eval_execute"})).json()[
            "items"
        ]
        await job_done(service, run["id"], "completed")
        shown = await opened(client, f"{eval_place}?show=failed")
        assert ("8: 4 passed, 4 failed" in shown, shown.count('data-key="v')) == (True, 4)
        await client.post(f"{place}/label", data={"trace_id": "t1", "rating": "negative"})
        against = f"{eval_place}/contradictions"
        assert (await opened(client, against)).count("<article") == 1
        await client.post(against, data={"trace_id": "t1", "wrong": "eval"})
        assert "Nothing to decide" in await opened(client, against)
        await client.post(against, data={"trace_id": "t1", "wrong": "label"})
        assert ">None<" in await opened(client, f"{against}?show=all")
        # Code by hand, a difference, and the end of it all
        refused = await client.post(f"{eval_place}/code", data={"code": "import os"})
        assert (refused.status_code, "imports os" in refused.text) == (422, True)
        service.clock.advance(1)
        code = "def evaluate(trace):\r\n    return {'passed': False, 'score': 0.0, 'reason': ''}\r\n"
        drafted = await client.post(f"{eval_place}/code", data={"code": code})
        job = await job_done(service, drafted.headers["location"].rpartition("/")[2], "completed")
        assert "No changes." in await opened(client, f"/evals/{job['eval_id']}?against={row['id']}")
        assert "Written by hand" in await opened(client, f"/evals/{job['eval_id']}")
        assert (await client.post(f"{place}/remove-trace", data={"trace_id": "t7"})).status_code == 303
        assert (await service.client.get("/api/traces/t7")).status_code == 404
        assert (await client.post(f"{eval_place}/remove")).status_code == 303
        await client.post(f"{place}/change", data={"name": "renamed", "description": "", "project": "p"})
        assert "renamed" in await opened(client, place)
        assert (await client.post(f"{place}/remove")).headers["location"] == "/eval-sets"
        assert (await client.get(place)).status_code == 404


async def test_hostile_texts_stay_texts(service: Service) -> None:
    service.engine.behaviour = EvalRunner()
    async with browser(service) as client:
        set_id = await with_traces(service, "hostile", count=8, labelled=8)
        evil = EVERYTHING.replace("\x00", "")[:9000]
        trace = {"id": 'e"><script>hit=1</script>', "input": [{"role": "user", "content": evil}], "output": evil}
        trace |= {
            "steps": [{"name": evil[:150], "error": evil}, evil],
            "metadata": {evil[:50]: evil},
            "label": "negative",
            "note": evil,
        }
        query = {"eval_set_id": set_id, "project": "hostile"}
        assert (await service.client.post("/api/traces", params=query, content=json.dumps(trace))).status_code == 201
        row = await generated(service, set_id, name=evil[:150].strip() or "x")
        await executed(service, row["id"])
        await service.client.post(f"/api/eval-sets/{set_id}/feedback", json={"trace_id": trace["id"], "rating": "positive"})
        for path in (
            f"/eval-sets/{set_id}",
            f"/eval-sets/{set_id}/generate",
            f"/evals/{row['id']}",
            f"/evals/{row['id']}/code",
            f"/evals/{row['id']}/contradictions?show=all",
            f"/jobs/{row['job_id']}",
            "/eval-sets",
            "/jobs?type=eval_generate&status=completed&dead=",
        ):
            await opened(client, path)
        shown = await client.get(f"/eval-sets/{set_id}/label", params={"trace": trace["id"], "show": ""})
        assert shown.status_code == 200
        assert_harmless(shown.text)


async def test_who_may_only_look_is_shown_no_buttons(service: Service) -> None:
    service.engine.behaviour = EvalRunner()
    set_id = await with_traces(service, "looked-at")
    row = await generated(service, set_id)
    for scope, sees in (("read", set()), ("run", {"/generate", "/label"})):
        made = await service.client.post("/api/tokens", json={"name": f"a {scope}", "scope": scope})
        async with httpx.AsyncClient(base_url=service.url, headers=SAME, timeout=20) as client:
            await client.post("/login", data={"token": made.json()["token"]})
            pages = [await opened(client, path) for path in (f"/eval-sets/{set_id}", f"/evals/{row['id']}", "/jobs")]
            main = "".join(page.partition("<main")[2].partition("</main>")[0] for page in pages)
            posts = set(re.findall(r'method="post" action="[^"]*(/[a-z]+)"', main))
            assert posts == ({"/execute"} if scope == "run" else set())
            assert bool(re.search(r"/generate", main)) == ("/generate" in sees)
            label = await opened(client, f"/eval-sets/{set_id}/label")
            assert ("label-bar" in label) == ("/label" in sees)
            answer = await client.post(f"/eval-sets/{set_id}/remove")
            assert answer.status_code == 403
