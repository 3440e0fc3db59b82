"""A JSON array in pieces gives what the whole text gives, wherever it is cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.datasets.formats.json_array import json_items

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@given(st.lists(VALUES, max_size=5), st.integers(1, 9), st.sampled_from([None, 1]))
def test_any_array_in_any_pieces(values: list[object], size: int, indent: int | None) -> None:
    assert list(json_items(cut(json.dumps(values, indent=indent), size))) == values


@pytest.mark.parametrize("text", ["", "{}", "[", "[1", "[1 2]", "[1,]", "[1] 2", "[,]", '["a', "nul", "[1]]"])
@pytest.mark.parametrize("size", [1, 100])
def test_what_is_no_array_is_an_error(text: str, size: int) -> None:
    with pytest.raises(ValueError):
        list(json_items(cut(text, size)))
