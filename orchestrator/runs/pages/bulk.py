"""One action on several runs of the list: cancel, retry, dismiss, add or remove tags, compare."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router
from orchestrator.errors import ClientError, Invalid
from orchestrator.http.context import caller_of
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.runs.labels.labels import checked_tags, typed_tags
from orchestrator.runs.labels.service import retag
from orchestrator.runs.views.run_table import same_address
from runner.contract.run_spec import EVAL_KINDS

router = page_router()

MOST = 100
PAST = {
    "cancel": "cancelled",
    "retry": "queued again",
    "dismiss": "dismissed",
    "tag": "tagged",
    "untag": "changed",
}
WHY = {
    "cancel": "has ended already, or belongs to another installation",
    "retry": "has not ended, or has every result already",
    "dismiss": "is no dead letter",
    "tag": "cannot have these tags",
    "untag": "could not be changed",
}
Action = Callable[[str], Awaitable[object]]


@router.get("/runs/bulk", policy=Policy(READ))
async def after_reload(page: Page) -> Response:
    return page.go("/runs")


@router.post("/runs/bulk", policy=Policy(RUN, spends=True))
async def act_on_runs(page: Page) -> Response:
    """What cannot be done to one run does not stop the others; the list says how many there were."""
    form = await page.form()
    run_ids = list(dict.fromkeys(form.get("run", [])))[:MOST]
    action, back = form.get("action", [""])[-1], same_address(form.get("back", [""])[-1])
    if action == "compare":
        return page.go(f"/compare?{urlencode([('run', run_id) for run_id in run_ids])}")
    if action not in PAST:
        raise Invalid("Choose what to do with the selected runs.")
    if not run_ids:
        return _back(page, back, "none")
    act, refused = _action(page, action, typed_tags(form.get("tags", [""])[-1])), 0
    for run_id in run_ids:
        try:
            await act(run_id)
        except ClientError:
            refused += 1
    page.context.signals.look()
    return _back(page, back, f"{action}.{len(run_ids) - refused}.{refused}")


def _action(page: Frame, action: str, typed: list[str]) -> Action:
    context = page.context
    if action in ("tag", "untag"):
        try:
            tags = checked_tags(typed)
        except ValueError as error:
            raise Invalid(f"Tags: {error}.") from None
        if not tags:
            raise Invalid("Enter the tags to add or remove beside the buttons.")
        return lambda run_id: retag(context.db, [run_id], **{"add" if action == "tag" else "remove": tags})
    if action == "retry":

        async def retry(run_id: str) -> str:
            run = await context.runs.get(run_id)
            if run.kind in EVAL_KINDS:
                return await context.jobs.retry(run_id, caller_of(page.request).scope)
            return await context.runs.retry(run_id)

        return retry
    return context.runs.cancel if action == "cancel" else context.runs.dismiss


def _back(page: Frame, query: str, done: str) -> Response:
    return page.go(f"/runs?{urlencode([*parse_qsl(query), ('done', done)])}")


def sentence_of(done: str) -> str | None:
    """What a form did, from the address that it led to; only known words are repeated."""
    if done == "none":
        return "No runs were selected."
    action, _, counts = done.partition(".")
    succeeded, _, refused = counts.partition(".")
    if action not in PAST or not all(text.isascii() and text.isdecimal() and len(text) < 4 for text in (succeeded, refused)):
        return None
    sentence = f"{succeeded} run{'' if succeeded == '1' else 's'} {PAST[action]}."
    return sentence if refused == "0" else f"{sentence} {refused} left as it was: it {WHY[action]}."
