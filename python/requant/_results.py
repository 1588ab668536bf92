"""What the functions of this package return."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def _table(rows: Sequence[dict[str, Any]], caption: str) -> str:
  """Returns an HTML table of the columns in which some row has a value."""
  names = [name for name in dict.fromkeys(name for row in rows for name in row)
           if any(row.get(name) is not None for row in rows)]

  def line(tag: str, values: Sequence[Any]) -> str:
    texts = ["" if value is None else
             f"{value:.6g}" if isinstance(value, float) else str(value)
             for value in values]
    return "<tr>" + "".join(
        f"<{tag}>{html.escape(text)}</{tag}>" for text in texts) + "</tr>"

  return (f"<table><caption>{html.escape(caption)}</caption>" +
          line("th", [name.replace("_", " ") for name in names]) +
          "".join(line("td", [row.get(name) for name in names])
                  for row in rows) + "</table>")


@dataclasses.dataclass(frozen=True)
class Comparison:
  """How a model's answers differ from its baseline's: the share of records with
  the same class, the change of accuracy in percentage points, and others."""

  records: int
  agreement: float | None
  difference_points: float | None
  mean_output_change: float | None
  max_output_change: float | None

  @classmethod
  def of(cls, json: dict[str, Any] | None) -> Comparison | None:
    if json is None:
      return None
    change = json["output_change"] or {}
    return cls(json["records"], (json["agreement"] or {}).get("share"),
               (json["accuracy"] or {}).get("difference_points"),
               change.get("mean"), change.get("max"))


def _figures(comparison: Comparison | None) -> dict[str, Any]:
  return dataclasses.asdict(comparison) if comparison else {}


@dataclasses.dataclass(frozen=True)
class Signature:
  """One of a quantized model; not compared if no records were held back."""

  name: str
  calibrated_records: int
  comparison: Comparison | None


@dataclasses.dataclass(frozen=True)
class Quantized:
  """An eight-bit model: where it is, how much of its work runs in int8, its
  size and the original's, its signatures, and what `requant quantize` prints."""

  output: Path
  coverage: str
  float_bytes: int
  bytes: int
  signatures: tuple[Signature, ...]
  text: str = dataclasses.field(repr=False)

  def _repr_html_(self) -> str:
    rows = [{"signature": part.name, "calibrated": part.calibrated_records,
             **_figures(part.comparison)} for part in self.signatures]
    return _table(rows, f"{self.output}: {self.bytes / 1e6:.3f} MB, before "
                  f"{self.float_bytes / 1e6:.3f} MB; {self.coverage}")


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """A model measured on records, alone or compared with a baseline. `figures`
  is everything that `requant evaluate --format=json` prints."""

  records: int
  accuracy: float | None
  baseline_accuracy: float | None
  records_per_second: float | None
  comparison: Comparison | None
  figures: dict[str, Any] = dataclasses.field(repr=False)

  def _repr_html_(self) -> str:
    json = self.figures
    rows = [{"graph": json["graph"], **_figures(self.comparison),
             **(json["metrics"] or {}), "records": self.records,
             "records_per_second": self.records_per_second}]
    if self.comparison:
      rows.append({
          "graph": json["baseline"], **(json["baseline_metrics"] or {}),
          "records_per_second": json["baseline_records_per_second"]})
    return _table(rows, f"{self.records} records")


@dataclasses.dataclass(frozen=True)
class Run:
  """A workflow that ran: its folder, which has graphs and report.html; the
  outcome, which is passed, inconclusive or gate_failed; the figures of each
  stage, beside its name as "stage"; and what `requant run` printed."""

  folder: Path
  outcome: str
  stages: tuple[dict[str, Any], ...] = dataclasses.field(repr=False)
  text: str = dataclasses.field(repr=False)

  def _repr_html_(self) -> str:
    columns = ("stage", "seconds", "accuracy", "difference_points",
               "difference_interval_95", "agreement", "mean_output_change",
               "mse", "records_per_second", "bytes", "verdict")
    rows = [{name: stage[name] for name in columns} for stage in self.stages]
    return _table(rows, f"{self.folder}: {self.outcome}")
