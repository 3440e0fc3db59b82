"""Schedules as people read them: list, one schedule, history, preview. Pure: the API's answers in, things to print out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.view.output import facts, table
from orchestrator.cli.view.text import ago, clean, moment, money, short_ids, span

VERDICT_STYLES = {"worse": "red", "better": "green", "no_change": "", "not_comparable": "dim"}


def schedules_table(schedules: Sequence[dict[str, Any]], now: datetime) -> RenderableType:
    if not schedules:
        return Text('No schedules. Make one: benchyard schedules set demo-strong --cron "0 6 * * *" --sample-size 20')
    rows = [
        (
            each["model"],
            each["cron_expression"],
            each["words"],
            f"{each['sample_size']} of {', '.join(each['benchmarks'])}",
            "paused" if each["paused"] else until(each["next_fire_at"], now),
        )
        for each in schedules
    ]
    return table(("Model", "Cron", "Meaning", "Problems", "Next"), rows)


def schedule_detail(schedule: dict[str, Any], now: datetime) -> RenderableType:
    panel, last = schedule["panel"], schedule["last_fire"]
    baseline = {
        "rolling": f"the {schedule['baseline_runs']} runs before",
        "last_good": "the newest run that was not worse",
        "run": f"run {schedule['baseline_run_id']}",
    }[schedule["baseline"]]
    late = "the newest late instant runs" if schedule["misfire_policy"] == "newest" else "late instants do not run"
    samples = schedule["samples_per_problem"]
    parts: list[RenderableType] = [
        facts(
            (
                ("Model", Text(clean(schedule["model"]), "bold")),
                ("When", f"{schedule['cron_expression']} ({schedule['words']})"),
                ("Next", "paused" if schedule["paused"] else _times(schedule["next_fires"], now)),
                ("Panel", f"version {panel['version']}, {panel['problems']} problems. {panel['how']}" if panel else None),
                ("Samples", f"{samples} per problem" if samples > 1 else None),
                ("Instance type", schedule["instance_type"]),
                ("Budget", None if schedule["budget_usd"] is None else f"{money(schedule['budget_usd'])} per run"),
                ("After an absence", f"{late}, up to {span(schedule['misfire_grace_s'])}"),
                ("Overlap", schedule["overlap"]),
                ("Compared with", baseline),
                ("Can see", schedule["can_see"]["sentence"]),
            )
        )
    ]
    if last:
        parts += ["", Text("Newest:", "dim"), history_table([last], now)]
    return Group(*parts)


def history_table(fires: Sequence[dict[str, Any]], now: datetime) -> RenderableType:
    if not fires:
        return Text("Nothing yet: no instant has passed since the schedule was made.")
    short = short_ids([str(fire["run_id"]) for fire in fires if fire["run_id"]])
    rows = [
        (
            clean(fire["instant"])[:16].replace("T", " "),
            ago(fire["instant"], now),
            fire["outcome"] if fire["cause"] == "cron" else f"{fire['outcome']} ({fire['cause']})",
            short.get(str(fire["run_id"]), ""),
            Text(clean(fire["verdict"] or ""), VERDICT_STYLES.get(str(fire["verdict"]), "")),
            (fire["comparison"] or {}).get("sentence") or fire["detail"],
        )
        for fire in fires
    ]
    return table(("Instant (UTC)", "", "Outcome", "Run", "Verdict", "What"), rows)


def preview_detail(preview: dict[str, Any], now: datetime) -> RenderableType:
    size = preview["size_for"]
    wanted = size and f"{size['problems']} problems for a drop of {100 * size['drop']:g} points"
    return Group(
        facts(
            (
                ("Cron", preview["cron"]),
                ("Meaning", f"{preview['words']}, {preview['tz']} time"),
                ("Can see", preview["can_see"]["sentence"]),
                ("Needed", wanted),
            )
        ),
        "",
        table(
            ("Fires at", "UTC", ""),
            [
                (local.replace("T", " "), clean(instant)[:16].replace("T", " "), until(instant, now))
                for local, instant in zip(preview["local_times"], preview["next_fires"], strict=True)
            ],
        ),
    )


def until(text: str | None, now: datetime) -> str:
    """How far ahead, in one unit."""
    if (at := moment(text)) is None:
        return "–"
    return f"in {span((at - now).total_seconds())}"


def _times(instants: Sequence[str], now: datetime) -> str:
    return ", ".join(f"{each[:16].replace('T', ' ')} UTC" for each in instants[:2]) + (
        f" ({until(instants[0], now)})" if instants else "–"
    )
