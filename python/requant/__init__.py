"""Requant: from a trained TensorFlow model to a verified int8 model on CPUs.

Each function calls the command of the same name, shows on sys.stderr what that
says, and returns what it found. It raises RequantError with the command's
sentence if that failed. Further keyword arguments are the command's flags:
`requant COMMAND --help` lists them.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from requant._handover import Data, Path, as_files
from requant._programs import GateError, RequantError, call
from requant._results import Comparison, Evaluation, Quantized, Run, Signature
from requant._versions import VERSION as __version__

# A further command is a function here, and what it returns is a dataclass of
# _results.py.
__all__ = [
    "Comparison", "Evaluation", "GateError", "Quantized", "RequantError", "Run",
    "Signature", "check_serving", "evaluate", "quantize", "run", "transform"
]

_MAX_RECORDS = 10_000


def quantize(saved_model: Path, calibration: Data | None = None, *,
             output: Path, dataset: Path | None = None, signature: str = "",
             max_records: int = _MAX_RECORDS, **flags: Any) -> Quantized:
  """Makes an eight-bit SavedModel, or a graph if `output` ends in .pb.

  It is calibrated on up to `max_records` of the records and compared with the
  original on others. `dataset` declares what feeds which input where the
  inputs' names do not tell. `signature` is the one that the records are for.
  """
  model = os.fspath(saved_model)
  most = 2 * max_records or sys.maxsize
  with as_files(calibration, model, signature, most) as data:
    printed, _ = call("quantize", saved_model=model, data=data, output=output,
                      dataset=dataset, signature=signature,
                      max_records=max_records, format="json", **flags)
  result = json.loads(printed)
  signatures = tuple(
      Signature(part["signature"], part["calibrated_records"],
                Comparison.of(part["comparison"]))
      for part in result["signatures"])
  return Quantized(pathlib.Path(output), result["coverage"],
                   result["float_bytes"], result["bytes"], signatures,
                   result["text"])


def evaluate(graph: Path, data: Data | None = None, *,
             baseline: Path | None = None, dataset: Path | None = None,
             signature: str = "", max_records: int = 0,
             **flags: Any) -> Evaluation:
  """Measures a graph or SavedModel, and compares it with a baseline.

  Of a tf.data.Dataset 20,000 records are taken unless `max_records` says how
  many. Raises GateError if accuracy certainly drops by more than the flag
  `max_accuracy_drop` allows.
  """
  model, most = os.fspath(graph), max_records or 2 * _MAX_RECORDS
  with as_files(data, model, signature, most) as files:
    printed, failed = call("evaluate", graph=model, data=files,
                           baseline=baseline, dataset=dataset,
                           signature=signature, max_records=max_records,
                           format="json", **flags)
  found = json.loads(printed)
  result = Evaluation(found["records"], (found["metrics"] or {}).get("accuracy"),
                      (found["baseline_metrics"] or {}).get("accuracy"),
                      found["records_per_second"],
                      Comparison.of(found["comparison"]), found)
  if failed:
    raise GateError(failed, result)
  return result


def run(workflow: Path = "", *, variables: Mapping[str, Any] | None = None,
        **flags: Any) -> Run:
  """Runs a workflow: a file, or one that comes with Requant, by its name.

  Raises GateError if a stage exceeds a limit.
  """
  words = [os.fspath(workflow)] if workflow else []
  words += [f"--set={key}={value}" for key, value in (variables or {}).items()]
  printed, failed = call("run", *words, **flags)
  report = re.search(r"^report: (.*)/report\.html$", printed, re.MULTILINE)
  if report is None:
    raise RequantError(failed or f"the run left no report: {printed.strip()}")
  folder = pathlib.Path(report[1])
  found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
  stages = tuple({"stage": stage["name"], **stage["figures"]}
                 for stage in found["stages"])
  result = Run(folder, found["outcome"], stages, printed)
  if failed:
    raise GateError(failed, result)
  return result


def transform(graph: Path, transforms: str, *, output: Path,
              outputs: str | Sequence[str] | None = None,
              inputs: str | Sequence[str] | None = None,
              **flags: Any) -> pathlib.Path:
  """Applies transforms, such as "strip_unused_nodes fold_constants"."""
  call("transform", in_graph=graph, out_graph=output, outputs=outputs,
       inputs=inputs, transforms=transforms, **flags)
  return pathlib.Path(output)


def check_serving(saved_model: Path, **flags: Any) -> str:
  """Returns how a model that `quantize` wrote answers its own requests here."""
  return call("check_serving", os.fspath(saved_model), **flags)[0].strip()
