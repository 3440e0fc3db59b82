"""What becomes of a check by test code: pure, from what the judge said and how the program ended."""

from dataclasses import dataclass, replace

from runner.sandbox.outcome import Ending, Execution


@dataclass(frozen=True)
class Checked:
    """One try."""

    execution: Execution
    again: bool
    """Something else than the program may be to blame."""


def tag(said: Execution) -> str:
    """The judge's word, empty if it gave none."""
    value = said.value
    return str(value[0]) if isinstance(value, list) and value else ""


def combine(said: Execution, candidate: Execution) -> Execution:
    """One execution out of what the judge said and how the program under test ended."""
    result = replace(candidate, value=None)
    if candidate.ending not in (Ending.finished, Ending.crashed):
        return result
    if said.ending is not Ending.finished or not isinstance(said.value, list):
        return replace(said, value=None, stdout=candidate.stdout, usage=candidate.usage)
    word, message = str(said.value[0]), str(said.value[1])
    tail = candidate.stderr_tail or said.stderr_tail
    if word == "passed":
        return replace(result, ending=Ending.finished, value=True, stderr_tail=tail, detail="All assertions held.")
    if word == "failed":
        detail = f"An assertion failed{': ' + message if message else ''}."
        return replace(result, ending=Ending.finished, value=False, stderr_tail=tail, detail=detail)
    if word == "memory":
        detail = "It asked for more memory than it may have."
        return replace(result, ending=Ending.memory_limit, stderr_tail=tail, detail=detail)
    if word == "gone":
        detail = "It ended before the test was over." if candidate.ending is Ending.finished else candidate.detail
        return replace(result, ending=Ending.crashed, detail=detail)
    own = str(said.value[2]) if len(said.value) > 2 else ""
    detail = f"The test raised {message}."
    return replace(result, ending=Ending.crashed, exit_code=1, stderr_tail=tail, detail=detail, judge_tag=own)
