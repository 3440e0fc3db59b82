"""Conditions on the results of runs that end a command with an exit code of their own: a least score, and not being worse
than an earlier run. For build servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.api.client import Client, Json, run_path
from orchestrator.cli.errors import BadUsage, GateFailed
from orchestrator.cli.files.writing import whole_file
from orchestrator.cli.view.text import clean

FailUnderOption = Annotated[
    float | None,
    typer.Option("--fail-under", metavar="SCORE", min=0, max=1, help="Exit with 6 if a score is below this, such as 0.7."),
]
FailIfWorseOption = Annotated[
    str | None,
    typer.Option("--fail-if-worse-than", metavar="RUN", help="Exit with 6 if a paired test finds a run worse than this."),
]
JunitOption = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write the results as JUnit XML.")]


def refuse_with_detach(detach: bool, *gates: object) -> None:
    if detach and any(gate is not None for gate in gates):
        raise BadUsage("--fail-under, --fail-if-worse-than and --junit need the results; leave out --detach.")


def write_junit(client: Client, runs: Sequence[Json], path: Path | None) -> None:
    """Raises `BadUsage` if the file cannot be written."""
    if path is None:
        return
    (run,) = runs
    try:
        with client.download(f"{run_path(str(run['id']))}/export", format="junit") as pieces, whole_file(path) as file:
            file.writelines(pieces)
    except OSError as error:
        raise BadUsage(f"--junit {clean(path)} cannot be written: {error.strerror}.") from error


def below(runs: Sequence[Json], least: float | None) -> list[str]:
    """A sentence for each run whose estimate is below `least`, or that has none."""
    if least is None:
        return []
    sentences = []
    for run in runs:
        estimate = (run["score"] or {}).get("estimate")
        if estimate is None:
            sentences.append(f"Run {clean(run['id'])} has no score, --fail-under is {least:g}.")
        elif estimate < least:
            sentences.append(f"Run {clean(run['id'])} has a score of {estimate:.4g}, --fail-under is {least:g}.")
    return sentences


def comparisons(client: Client, runs: Sequence[Json], base: str | None) -> list[Json]:
    """Every run compared with `base`, by the service."""
    if base is None:
        return []
    return [client.get(f"{run_path(str(run['id']))}/comparison", base=base) for run in runs]


def worse(compared: Sequence[Json]) -> list[str]:
    """A sentence for each run that is worse, or that cannot be compared: a gate that compared nothing has not passed."""
    return [said(one) for one in compared if one["verdict"] in ("worse", "nothing")]


def said(compared: Json) -> str:
    """What was compared, and the result."""
    names = f"Run {clean(compared['run_id'])} compared with {clean(compared['base'])}"
    if compared["verdict"] == "nothing":
        return f"{names}: they have no problem in common."
    change = f"{compared['difference']:+.4g} ({compared['low']:+.4g} to {compared['high']:+.4g})"
    return f"{names} on {compared['problems']} problems: {compared['verdict']}, {change}, p = {compared['p_value']:.3g}."


def raise_for_gates(sentences: Sequence[str]) -> None:
    if sentences:
        raise GateFailed(" ".join(sentences))
