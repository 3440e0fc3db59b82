"""What servers taught about the form of requests, by provider and model. In memory; `on_learned` may store it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.gateway.upstream.kinds.request_forms import SENTENCES, Adjustment
from orchestrator.gateway.upstream.providers import Provider


@dataclass(frozen=True)
class Learned:
    """`form`: None if the form of the provider's kind is right. `ignored_limit`: a sentence, if the server ignores the
    token limit. `most_over`: the largest ratio of an answer's tokens to its limit that was seen."""

    form: frozenset[Adjustment] | None = None
    ignored_limit: str = ""
    most_over: float = 0.0

    def sentences(self) -> list[str]:
        said = [SENTENCES[adjustment] for adjustment in sorted(self.form or ())]
        return [*said, self.ignored_limit] if self.ignored_limit else said


NOTHING = Learned()
Place = tuple[str, str, str]
"""Provider, its server, model."""
OnLearned = Callable[[Place, Learned], None]


class FormBook:
    def __init__(self, on_learned: OnLearned = lambda place, learned: None) -> None:
        self._learned: Mapping[Place, Learned] = {}
        self.on_learned = on_learned

    def of(self, provider: Provider, model: str) -> Learned:
        return self._learned.get(place_of(provider, model), NOTHING)

    def learn(self, provider: Provider, model: str, learned: Learned) -> None:
        place = place_of(provider, model)
        if self._learned.get(place) != learned:
            self._learned = {**self._learned, place: learned}
            self.on_learned(place, learned)

    def set_all(self, learned: Mapping[Place, Learned]) -> None:
        self._learned = dict(learned)

    def models_of(self, provider: Provider) -> dict[str, Learned]:
        name, server, _ = place_of(provider, "")
        return {place[2]: learned for place, learned in self._learned.items() if place[:2] == (name, server)}


def place_of(provider: Provider, model: str) -> Place:
    """What was learned of one server says nothing of another, even under the same name."""
    return provider.name, _server(provider.base_url, provider.kind.name, provider.api_version), model


@lru_cache(maxsize=256)
def _server(base_url: str, kind: str, api_version: str) -> str:
    return hashlib.sha256(json.dumps([base_url, kind, api_version]).encode()).hexdigest()[:32]
