"""What the functions of this package return."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def _shown(value: Any) -> str:
  if value is None:
    return ""
  return f"{value:.6g}" if isinstance(value, float) else str(value)


def _table(rows: Sequence[dict[str, Any]], caption: str) -> str:
  """Returns an HTML table of the columns in which some row has a value."""
  names = [n for n in (rows[0] if rows else ())
           if any(row[n] is not None for row in rows)]
  line = lambda tag, cells: "<tr>" + "".join(
      f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
  body = [line("td", (_shown(row[name]) for name in names)) for row in rows]
  head = line("th", (name.replace("_", " ") for name in names))
  return (f"<table><caption>{html.escape(caption)}</caption>"
          f"<thead>{head}</thead><tbody>{''.join(body)}</tbody></table>")


@dataclasses.dataclass(frozen=True)
class Comparison:
  """How a model's answers differ from those of its baseline."""

  records: int
  agreement: float | None
  """The share of records with the same class."""
  difference_points: float | None
  """The change of accuracy in percentage points."""
  mean_output_change: float | None
  max_output_change: float | None
  figures: dict[str, Any] = dataclasses.field(repr=False)
  """Everything, as `requant evaluate --format=json` has it."""

  @classmethod
  def of(cls, json: dict[str, Any]) -> Comparison:
    part = lambda name: json[name] or {}
    return cls(json["records"], part("agreement").get("share"),
               part("accuracy").get("difference_points"),
               part("output_change").get("mean"),
               part("output_change").get("max"), json)

  def row(self) -> dict[str, Any]:
    return {field.name: getattr(self, field.name)
            for field in dataclasses.fields(self) if field.name != "figures"}


_UNCOMPARED = dict.fromkeys(
    field.name for field in dataclasses.fields(Comparison)[:-1])


@dataclasses.dataclass(frozen=True)
class Signature:
  """What became of one signature of a quantized model."""

  name: str
  calibrated_records: int
  comparison: Comparison | None
  """Unset if no records were held back."""


@dataclasses.dataclass(frozen=True)
class Quantized:
  """An eight-bit model."""

  output: Path
  coverage: str
  """How much of the work runs in int8, and what does not."""
  float_bytes: int
  bytes: int
  signatures: tuple[Signature, ...]
  text: str = dataclasses.field(repr=False)
  """What `requant quantize` prints."""

  @classmethod
  def of(cls, json: dict[str, Any]) -> Quantized:
    signatures = tuple(
        Signature(part["signature"], part["calibrated_records"],
                  part["comparison"] and Comparison.of(part["comparison"]))
        for part in json["signatures"])
    return cls(Path(json["output"]), json["coverage"], json["float_bytes"],
               json["bytes"], signatures, json["text"])

  def _repr_html_(self) -> str:
    rows = [{"signature": part.name,
             "calibrated_records": part.calibrated_records,
             **(part.comparison.row() if part.comparison else _UNCOMPARED)}
            for part in self.signatures]
    return _table(rows, f"{self.output}: {self.bytes / 1e6:.3f} MB, before "
                  f"{self.float_bytes / 1e6:.3f} MB; {self.coverage}")


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """A model measured on records, alone or compared with a baseline."""

  records: int
  accuracy: float | None
  baseline_accuracy: float | None
  records_per_second: float | None
  comparison: Comparison | None
  figures: dict[str, Any] = dataclasses.field(repr=False)
  """Everything, as `requant evaluate --format=json` has it."""

  @classmethod
  def of(cls, json: dict[str, Any]) -> Evaluation:
    return cls(json["records"], (json["metrics"] or {}).get("accuracy"),
               (json["baseline_metrics"] or {}).get("accuracy"),
               json["records_per_second"],
               json["comparison"] and Comparison.of(json["comparison"]), json)

  def _repr_html_(self) -> str:
    json = self.figures
    rows = [{"graph": json["graph"], **(json["metrics"] or {}),
             "records_per_second": self.records_per_second}]
    if self.comparison:
      rows[0].update(self.comparison.row(), records=self.records)
      rows.append({**dict.fromkeys(rows[0]), "graph": json["baseline"],
                   **(json["baseline_metrics"] or {}), "records_per_second":
                   json["baseline_records_per_second"]})
    return _table(rows, f"{json['dataset']}, {self.records} records")


@dataclasses.dataclass(frozen=True)
class Run:
  """A workflow that ran."""

  folder: Path
  """Has the graphs, report.html and results.json."""
  outcome: str
  """passed, inconclusive or gate_failed."""
  stages: tuple[dict[str, Any], ...] = dataclasses.field(repr=False)
  """The figures of each stage, with its name as `stage`."""
  text: str = dataclasses.field(repr=False)
  """What `requant run` prints."""

  @classmethod
  def of(cls, folder: Path, json: dict[str, Any], text: str) -> Run:
    stages = tuple({"stage": part["name"], **part["figures"]}
                   for part in json["stages"])
    return cls(folder, json["outcome"], stages, text)

  def _repr_html_(self) -> str:
    columns = ("stage", "seconds", "accuracy", "difference_points",
               "difference_interval_95", "agreement", "mean_output_change",
               "mse", "records_per_second", "bytes", "verdict")
    rows = [{name: stage[name] for name in columns} for stage in self.stages]
    return _table(rows, f"{self.folder}: {self.outcome}")
