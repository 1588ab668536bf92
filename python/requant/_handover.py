"""Hands arrays and datasets over to the programs, by files."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

from requant._calls import call
from requant._programs import RequantError

Paths = Union[str, "os.PathLike[str]", "list[str | os.PathLike[str]]"]
# Files; an array, or arrays by the names of the model's inputs; (x, y), where y
# are labels; or batches of these, such as a tf.data.Dataset.
Data = Union[Paths, Mapping[str, Any], Iterable[Any]]

_MOST_BYTES = 1 << 30


def _inputs_of(model: str, signature: str) -> dict[str, dict[str, Any]]:
  """Returns types and shapes of the model's inputs by their names."""
  summary = json.loads(
      call("summarize", [f"--in_graph={model}", "--format=json"])[0])
  signatures = {s["name"]: s["inputs"] for s in summary["signatures"]
                if not s["name"].startswith("__")}
  name = signature or "serving_default"
  if name not in signatures and not signature and len(signatures) == 1:
    name = next(iter(signatures))
  inputs = signatures.get(name, summary["inputs"])
  return {spec.get("key", spec["name"]): spec for spec in inputs}


def _as_array(value: Any, spec: Mapping[str, Any], is_batch: bool) -> Any:
  import numpy as np
  array = np.asarray(value)
  if array.dtype == object:  # So TensorFlow has texts.
    texts = [v if isinstance(v, bytes) else str(v).encode()
             for v in array.ravel()]
    array = np.array(texts, "S").reshape(array.shape)
  elif spec.get("type") in ("float", "half", "bfloat16"):
    if array.dtype.kind in "fiu":
      array = array.astype(np.float32)
  shape = spec.get("shape")
  if is_batch and shape is not None and array.ndim == len(shape) - 1:
    array = array[None]  # A dataset that is not batched.
  return array if array.ndim else array[None]


def _columns(data: Any, inputs: Mapping[str, Mapping[str, Any]],
             is_batch: bool = False) -> dict[str, Any]:
  """Returns arrays by name."""
  columns: dict[str, Any] = {}
  if isinstance(data, tuple) and data:
    label = _as_array(data[1], {}, is_batch) if len(data) > 1 else None
    if label is not None and label.size == len(label):
      columns["label"] = label.reshape(-1)
    data = data[0]
  if not isinstance(data, Mapping):
    if len(inputs) != 1:
      raise RequantError(
          f"the model has the inputs {', '.join(sorted(inputs))}: give a dict "
          "with an array for each of them")
    data = {next(iter(inputs)): data}
  for name, value in data.items():
    columns[name] = _as_array(value, inputs.get(name, {}), is_batch)
  return columns


def _gathered(batches: Iterable[Any], inputs: Mapping[str, Mapping[str, Any]],
              most: int) -> dict[str, Any]:
  """Returns the first records of a dataset, up to a limit, as arrays."""
  import numpy as np
  parts: list[dict[str, Any]] = []
  records = size = 0
  if hasattr(batches, "as_numpy_iterator"):
    batches = batches.as_numpy_iterator()
  for batch in batches:
    parts.append(_columns(batch, inputs, is_batch=True))
    records += len(next(iter(parts[-1].values())))
    size += sum(array.nbytes for array in parts[-1].values())
    if records >= most or size >= _MOST_BYTES:
      break
  if not parts:
    raise RequantError("the dataset has no records")
  return {name: np.concatenate([part[name] for part in parts])[:most]
          for name in parts[0]}


@contextlib.contextmanager
def as_files(data: Data | None, model: str, signature: str,
             most: int) -> Iterator[str | None]:
  """Yields what the flag --data takes, while the files are there."""
  if data is None or isinstance(data, (str, os.PathLike)):
    yield data and os.fspath(data)
  elif isinstance(data, list) and data and all(
      isinstance(item, (str, os.PathLike)) for item in data):
    yield ",".join(map(os.fspath, data))
  else:
    import numpy as np
    inputs = _inputs_of(model, signature)
    whole = isinstance(data, (Mapping, tuple)) or hasattr(data, "__array__")
    columns = (_columns if whole else _gathered)(  # type: ignore[operator]
        data, inputs, *(() if whole else (most,)))
    with tempfile.TemporaryDirectory(prefix="requant-") as folder:
      path = os.path.join(folder, "records.npz")
      np.savez(path, **columns)
      yield path
