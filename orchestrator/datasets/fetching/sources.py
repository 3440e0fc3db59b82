"""The sources of known benchmarks: formats, files, and their known sizes and digests.

Only this module names the two hosts. Files with a known sha256 are checked against it; those of the Hugging Face hub are
checked against the digest that the hub reports.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.published.gsm8k import Gsm8k
from orchestrator.datasets.formats.published.humaneval import HumanEval, HumanEvalPlus
from orchestrator.datasets.formats.published.livecodebench import LiveCodeBench, SelfRepair
from orchestrator.datasets.formats.published.mbpp import Mbpp, MbppPlus
from orchestrator.datasets.formats.published.mmlu_pro import MmluPro
from orchestrator.datasets.formats.records import Format

HF_ENDPOINT = "https://huggingface.co"
GITHUB = "https://github.com"

LCB_FILES = ("test.jsonl", "test2.jsonl", "test3.jsonl", "test4.jsonl", "test5.jsonl", "test6.jsonl")
LATEST_RELEASE = "release_latest"


@dataclass(frozen=True)
class RemoteFile:
    url: str
    size: int | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        last = unquote(urlsplit(self.url).path).rstrip("/").rpartition("/")[2]
        return re.sub(r"[^\w.()+-]", "_", last)[-150:].lstrip(".") or "file"


FORMATS: Mapping[str, Format] = {
    "livecodebench": LiveCodeBench(),
    "livecodebench_self_repair": SelfRepair(),
    "humaneval": HumanEval(),
    "humaneval_plus": HumanEvalPlus(),
    "mbpp": Mbpp(),
    "mbpp_plus": MbppPlus(),
    "mmlu_pro": MmluPro(),
    "gsm8k": Gsm8k(),
}

HUB_SCHEME = "hf://"
ON_GITHUB = "github"
"""The release of a benchmark that means: the files that its authors published before the hub had them."""

_ON_GITHUB: Mapping[str, RemoteFile] = {
    "humaneval": RemoteFile(
        f"{GITHUB}/openai/human-eval/raw/master/data/HumanEval.jsonl.gz",
        44877,
        "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
    ),
    "humaneval_plus": RemoteFile(
        f"{GITHUB}/evalplus/humanevalplus_release/releases/download/v0.1.10/HumanEvalPlus.jsonl.gz"
    ),
    "mbpp": RemoteFile(
        f"{GITHUB}/google-research/google-research/raw/master/mbpp/mbpp.jsonl",
        563743,
        "ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f",
    ),
    "mbpp_plus": RemoteFile(f"{GITHUB}/evalplus/mbppplus_release/releases/download/v0.2.0/MbppPlus.jsonl.gz"),
    "mmlu_pro": RemoteFile(
        f"{GITHUB}/TIGER-AI-Lab/MMLU-Pro/raw/main/eval_results/model_outputs_gemini-1.5-pro-002_5shots.zip",
        3554333,
        "7d95c116e999dc15012d753e871bbbc8fd4e74b9feb49b992ea55247576af370",
    ),
    "gsm8k": RemoteFile(
        f"{GITHUB}/openai/grade-school-math/raw/master/grade_school_math/data/test.jsonl",
        749738,
        "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
    ),
}


@dataclass(frozen=True)
class HubSplits:
    """Splits of a data set on the hub; a revision is a branch, a tag or a commit."""

    repo: str
    config: str | None = None
    splits: tuple[str, ...] = ("test",)
    revision: str | None = None

    def __str__(self) -> str:
        return " ".join(part for part in (self.repo, self.config, "+".join(self.splits)) if part)


_ON_HUB: Mapping[str, HubSplits] = {
    "mmlu_pro": HubSplits("TIGER-Lab/MMLU-Pro", "default", ("test", "validation")),
    "gsm8k": HubSplits("openai/gsm8k", "main", ("test",)),
    "humaneval": HubSplits("openai/openai_humaneval", None, ("test",)),
    "mbpp": HubSplits("google-research-datasets/mbpp", "full", ("prompt", "test", "validation", "train")),
}
"""Problems have the order of the splits in the pack; MBPP's follow its numbers."""


def hub_splits(
    name: str,
    source: str | None = None,
    release: str | None = None,
    revision: str | None = None,
    config: str | None = None,
    split: str | None = None,
) -> HubSplits | None:
    """What to take from the hub; None if the benchmark or the source is elsewhere. Raises `BadSource`."""
    if source is not None and source.startswith(HUB_SCHEME):
        repo = source.removeprefix(HUB_SCHEME).removeprefix("datasets/").strip("/")
        repo, _, at = repo.partition("@")
        if not re.fullmatch(r"[\w.-]{1,96}(/[\w.-]{1,96})?", repo, re.ASCII):
            raise BadSource(f"{source!r} is not a hub data set: write hf://owner/name, or hf://owner/name@revision.")
        if release:
            raise BadSource("A release can be chosen only without --from; a revision is chosen with --revision.")
        return HubSplits(repo, config, (split,) if split else ("test",), revision or at or None)
    if source is None and name in _ON_HUB and release != ON_GITHUB:
        if release:
            raise BadSource(f"{name!r} has no releases; leave --release out, or give --revision for another version.")
        known = _ON_HUB[name]
        return replace(known, config=config or known.config, splits=(split,) if split else known.splits, revision=revision)
    if revision or config or split:
        raise BadSource("Revision, config and split can be chosen only for data sets on the hub (--from hf://owner/name).")
    return None


def hub_endpoint(environment: Mapping[str, str] = os.environ) -> str:
    return (environment.get("HF_ENDPOINT") or HF_ENDPOINT).rstrip("/")


def remote_files(name: str, release: str | None, endpoint: str) -> list[RemoteFile]:
    """The files to download for a known benchmark."""
    if isinstance(FORMATS.get(name), LiveCodeBench):
        shards = _shards(release or LATEST_RELEASE)
        return [RemoteFile(f"{endpoint}/datasets/{FORMATS[name].origin}/resolve/main/{file}") for file in shards]
    if name not in _ON_GITHUB:
        known = ", ".join(sorted(FORMATS))
        raise BadSource(f"It is not known where {name!r} comes from. Give a file or an address with --from; known: {known}.")
    if release not in (None, ON_GITHUB):
        raise BadSource(f"{name!r} has no releases; leave --release out.")
    return [_ON_GITHUB[name]]


def _shards(release: str) -> tuple[str, ...]:
    """`release_v3` means files 1 to 3, `v3` only the third, `v2_v4` files 2 to 4, `release_latest` all."""
    last = len(LCB_FILES)
    if release == LATEST_RELEASE:
        return LCB_FILES
    if found := re.fullmatch(r"(release_)?v([1-9])(?:_v([1-9]))?", release):
        until = int(found[3] or found[2])
        since = 1 if found[1] else int(found[2])
        if since <= until <= last and not (found[1] and found[3]):
            return LCB_FILES[since - 1 : until]
    raise BadSource(
        f"LiveCodeBench has no release {release!r}: release_v1 to release_v{last}, release_latest, v1, or v2_v4."
    )
