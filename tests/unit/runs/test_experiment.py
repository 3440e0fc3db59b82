"""The form that starts runs: what it asks for, and the same as a command and as YAML."""

from __future__ import annotations

import yaml

from orchestrator.batches.schemas import BatchCreate
from orchestrator.runs.schemas import RunCreate
from orchestrator.runs.views.experiment import Experiment

FORM = {
    "model": ["a", "a"],
    "benchmark": ["sample"],
    "sample_size": ["5"],
    "seed": ["7"],
    "samples_per_problem": ["1"],
    "difficulty": ["easy", "hard"],
    "tags": ["x, y"],
    "name": ["It's one"],
    "after": ["2024-01-01"],
    "repeats": ["1"],
}


def test_one_model_is_a_run_and_not_a_grid() -> None:
    given = Experiment.of(FORM)
    assert (given.models, given.is_grid(), given.runs(2)) == (("a",), False, 1)
    body = RunCreate.model_validate(given.run_body())
    assert (body.model_id, body.sample_size, body.difficulty, body.tags) == ("a", 5, ["easy", "hard"], ["x", "y"])
    assert given.as_command() == (
        "benchyard run --model a --sample-size 5 --benchmark sample --difficulty easy --difficulty hard --tag x --tag y "
        "--seed 7 --after 2024-01-01 --name 'It'\"'\"'s one'"
    )


def test_models_machines_and_repeats_multiply() -> None:
    given = Experiment.of({**FORM, "model": ["a", "b"], "instance_type": ["lite", "standard-1"], "repeats": ["3"]})
    assert (given.is_grid(), given.runs(2)) == (True, 24)
    body = BatchCreate.model_validate(given.grid_body())
    assert (body.models, body.instance_types, body.runs_per_instance_type) == (["a", "b"], ["lite", "standard-1"], 3)
    assert body.request(reuse_answers=False).tags == ("x", "y")
    assert given.as_command() == "benchyard batch run experiment.yaml"


def test_the_yaml_is_the_same_batch() -> None:
    given = Experiment.of({**FORM, "model": ["a", "b"], "name": ["true: [x"], "repeats": ["2"]})
    read = BatchCreate.model_validate(yaml.safe_load(given.as_yaml()))
    assert read == BatchCreate.model_validate(given.grid_body())


def test_several_models_on_one_machine_are_one_line() -> None:
    assert Experiment.of({**FORM, "model": ["a", "b"]}).as_command().startswith("benchyard run --model a --model b ")


def test_a_text_that_is_no_number_is_left_for_the_api_to_refuse() -> None:
    assert Experiment.of({**FORM, "sample_size": ["many"]}).run_body()["sample_size"] == "many"
