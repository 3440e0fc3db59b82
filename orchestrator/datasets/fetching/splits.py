"""Which files of a hub data set make up a split. Pure: names and the card's metadata in, names out.

The card's `configs` decide if it has any, as they do for the hub itself. Otherwise the split's name is looked for in the
names of files and folders: `data/test-00000-of-00001.parquet`, `main/test.jsonl`, `test/part1.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from typing import Any

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.unpacking import data_suffix

PREFERRED = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")
DEFAULT_CONFIG = "default"
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}

Configs = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Config -> split -> patterns of paths."""


def configs_of(card: Mapping[str, Any]) -> Configs:
    """The configs of a card. The default one comes first; entries without files are left out."""
    configs: dict[str, dict[str, tuple[str, ...]]] = {}
    entries = card.get("configs")
    entries = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    for entry in sorted(entries, key=lambda entry: not entry.get("default")):
        if splits := _splits(entry.get("data_files")):
            configs[str(entry.get("config_name") or DEFAULT_CONFIG)] = splits
    return configs


def _splits(data_files: Any) -> dict[str, tuple[str, ...]]:
    if isinstance(data_files, str):
        return {"train": (data_files,)}
    if isinstance(data_files, Mapping):
        return {str(split): _patterns(paths) for split, paths in data_files.items() if _patterns(paths)}
    splits: dict[str, tuple[str, ...]] = {}
    for entry in data_files if isinstance(data_files, list) else []:
        if isinstance(entry, Mapping) and (patterns := _patterns(entry.get("path"))):
            splits[str(entry.get("split") or "train")] = patterns
        elif isinstance(entry, str):
            splits["train"] = (*splits.get("train", ()), entry)
    return splits


def _patterns(paths: Any) -> tuple[str, ...]:
    given = [paths] if isinstance(paths, str) else paths if isinstance(paths, list) else []
    return tuple(path for path in given if isinstance(path, str))


def files_of_split(
    repo: str, paths: Sequence[str], configs: Configs, config: str | None = None, split: str | None = None
) -> list[str]:
    """The files of a split in the order of their names; raises `BadSource` that says what there is instead."""
    split = split or "test"
    if configs:
        return _by_card(repo, paths, configs, config, split)
    data = [path for path in paths if data_suffix(path) in PREFERRED]
    within = [path for path in data if config is None or config in path.split("/")[:-1]]
    named = [path for path in within if _names(path, split)]
    if not named and len(within) == 1 and config is None:
        return within
    if not named:
        of_config = f" in config {config!r}" if config else ""
        shown = ", ".join(data[:10]) or "none"
        raise BadSource(f"{repo} has no file of the split {split!r}{of_config}. Its data files: {shown}.")
    folders = sorted({path.rpartition("/")[0] for path in named})
    if len(folders) > 1 and config is None:
        raise BadSource(f"{repo} has the split {split!r} in several configs; choose one: {', '.join(folders)[:300]}.")
    suffixes = {data_suffix(path) for path in named}
    best = next(suffix for suffix in PREFERRED if suffix in suffixes)
    return sorted(path for path in named if data_suffix(path) == best)


def _by_card(repo: str, paths: Sequence[str], configs: Configs, config: str | None, split: str) -> list[str]:
    if config is None:
        config = DEFAULT_CONFIG if DEFAULT_CONFIG in configs else next(iter(configs))
        if split not in configs[config] and (holders := [name for name in configs if split in configs[name]]):
            config = holders[0]
    if config not in configs:
        raise BadSource(f"{repo} has no config {config!r}: {', '.join(configs)[:300]}.")
    if split not in configs[config]:
        raise BadSource(f"{repo} has no split {split!r} in config {config!r}: {', '.join(configs[config])[:300]}.")
    rules = [_glob(pattern) for pattern in configs[config][split]]
    named = sorted(path for path in paths if any(rule.fullmatch(path) for rule in rules))
    if not named:
        raise BadSource(f"{repo} names files for the split {split!r} of {config!r}, but has none of them.")
    return named


def _glob(pattern: str) -> re.Pattern[str]:
    """`*` stays within a folder, `**/` is any number of folders."""
    parts = [re.escape("/").join(_segment(part) for part in piece.split("/")) for piece in pattern.split("**/")]
    return re.compile("(?:.*/)?".join(parts))


def _segment(part: str) -> str:
    inner = translate(part).removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z")
    return inner.replace(".*", "[^/]*")


def _names(path: str, split: str) -> bool:
    """Whether a word of the path is the split's name or a usual synonym of it."""
    words = set(re.split(r"[^a-z0-9]+", path.lower()))
    return bool(words & set(SYNONYMS.get(split, (split.lower(),))))
