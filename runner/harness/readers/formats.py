"""The reader of each format."""

from runner.contract.harness import ResultsFormat
from runner.harness.readers import inspect_log, json_lines, junit, lm_eval, nemo_evaluator
from runner.harness.readers.item import Reader

READERS: dict[ResultsFormat, Reader] = {
    ResultsFormat.JSON_LINES: json_lines.read,
    ResultsFormat.INSPECT: inspect_log.read,
    ResultsFormat.LM_EVAL: lm_eval.read,
    ResultsFormat.JUNIT: junit.read,
    ResultsFormat.NEMO_EVALUATOR: nemo_evaluator.read,
}
