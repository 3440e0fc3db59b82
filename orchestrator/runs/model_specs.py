"""A model of the catalogue as runners are told it."""

from __future__ import annotations

from orchestrator.models.tables import LlmModel
from runner.contract.run_spec import ModelSpec, Protocol


def model_spec_of(model: LlmModel) -> ModelSpec:
    params = {key: value for key, value in model.params.items() if key in ModelSpec.model_fields}
    return ModelSpec.model_validate(
        {
            **params,
            "slug": model.slug,
            "provider": model.provider,
            "name": model.name,
            "protocol": Protocol(model.protocol),
        }
    )
