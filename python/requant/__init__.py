"""Requant: from a trained TensorFlow model to a verified int8 model on CPUs.

Each function calls the command of the same name, shows on sys.stderr what that
says, and returns what it found. It raises RequantError with the command's
sentence if that failed. Further keyword arguments are the command's flags:
`requant COMMAND --help` lists them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from requant._calls import GateError, call, flags_of
from requant._handover import Data, as_files
from requant._programs import RequantError
from requant._results import Comparison, Evaluation, Quantized, Run, Signature
from requant._versions import VERSION as __version__

# A further command is a function here, and what it returns a dataclass of
# _results.py.
__all__ = [
    "Comparison", "Data", "Evaluation", "GateError", "Quantized",
    "RequantError", "Run", "Signature", "check_serving", "evaluate", "quantize",
    "run", "transform"
]

_Path = str | os.PathLike[str]
_MAX_RECORDS = 10_000


def quantize(saved_model: _Path,
             calibration: Data | None = None,
             *,
             output: _Path,
             dataset: _Path | None = None,
             signature: str = "",
             max_records: int = _MAX_RECORDS,
             **flags: Any) -> Quantized:
  """Makes an eight-bit SavedModel of a SavedModel.

  Args:
    saved_model: its folder.
    calibration: records, of which a part is held back to compare the two. Of a
      dataset, 2 * `max_records` at most are taken.
    output: the folder of the new SavedModel, or a graph's file (.pb).
    dataset: a declaration of records, for what arrays by the inputs' names
      cannot express; it also names the files if `calibration` is not given.
    signature: the one that the records are for.
    max_records: calibrate on so many at most.
    **flags: such as target="host" or overwrite=True.
  """
  model = os.fspath(saved_model)
  with as_files(calibration, model, signature, 2 * max_records) as data:
    printed, _ = call("quantize", flags_of({
        "saved_model": model, "data": data, "output": os.fspath(output),
        "dataset": dataset, "signature": signature,
        "max_records": max_records, "format": "json", **flags}))
  return Quantized.of(json.loads(printed))


def evaluate(graph: _Path,
             data: Data | None = None,
             *,
             baseline: _Path | None = None,
             dataset: _Path | None = None,
             signature: str = "",
             max_records: int = 0,
             **flags: Any) -> Evaluation:
  """Measures a graph or SavedModel on records.

  Args:
    graph: a graph's file, or a SavedModel's folder.
    data: records, with labels if there are any.
    baseline: a model to compare with, record by record.
    dataset: a declaration of records.
    signature: the SavedModel's signature.
    max_records: stop after so many; 0: all, of a dataset 2 * 10,000.
    **flags: such as max_accuracy_drop=0.5.

  Raises:
    GateError: if accuracy certainly drops by more than max_accuracy_drop.
  """
  model = os.fspath(graph)
  most = max_records or 2 * _MAX_RECORDS
  with as_files(data, model, signature, most) as files:
    printed, failed = call("evaluate", flags_of({
        "graph": model, "data": files, "baseline": baseline,
        "dataset": dataset, "signature": signature,
        "max_records": max_records, "format": "json", **flags}))
  result = Evaluation.of(json.loads(printed))
  if failed:
    raise GateError(failed, result)
  return result


def run(workflow: _Path = "",
        *,
        variables: Mapping[str, Any] | None = None,
        **flags: Any) -> Run:
  """Runs a workflow, each stage verified.

  Args:
    workflow: its file, or the name of one that comes with Requant.
    variables: values of its variables.
    **flags: such as output="out/mine" or keep_going=True.

  Raises:
    GateError: if a stage exceeds a limit.
  """
  settings = [f"--set={k}={v}" for k, v in (variables or {}).items()]
  printed, failed = call(
      "run", [*filter(None, [os.fspath(workflow)]), *settings,
              *flags_of(flags)])
  report = re.search(r"^report: (.*)/report\.html$", printed, re.MULTILINE)
  if report is None:
    raise RequantError(failed or "the run left no report: " + printed.strip())
  folder = Path(report[1])
  results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
  result = Run.of(folder, results, printed)
  if failed:
    raise GateError(failed, result)
  return result


def transform(graph: _Path,
              transforms: str,
              *,
              output: _Path,
              outputs: str | list[str] = (),
              inputs: str | list[str] = (),
              **flags: Any) -> Path:
  """Applies transforms, such as "strip_unused_nodes fold_constants"."""
  call("transform", flags_of({
      "in_graph": graph, "out_graph": output, "outputs": outputs or "",
      "inputs": inputs or "", "transforms": transforms, **flags}))
  return Path(output)


def check_serving(saved_model: _Path, **flags: Any) -> str:
  """Runs the requests that a model of `quantize` carries; returns findings."""
  return call("check_serving", [os.fspath(saved_model), *flags_of(flags)])[0]
