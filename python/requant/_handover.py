"""Hands arrays and datasets over to the programs, by files."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

from requant._programs import RequantError, call

Path = Union[str, "os.PathLike[str]"]
# Paths of files; an array, or arrays by the names of the model's inputs; a tuple
# (x, y), where y are labels; or batches of these, such as a tf.data.Dataset.
Data = Union[Path, Mapping[str, Any], Iterable[Any]]

_MOST_BYTES = 1 << 30
_Inputs = Mapping[str, Mapping[str, Any]]


def _inputs_of(model: str, signature: str) -> _Inputs:
  """Returns types and shapes of the model's inputs by their names."""
  summary = json.loads(call("summarize", in_graph=model, format="json")[0])
  signatures = {part["name"]: part["inputs"] for part in summary["signatures"]
                if not part["name"].startswith("__")}
  only = next(iter(signatures)) if len(signatures) == 1 else "serving_default"
  inputs = signatures.get(signature or only, summary["inputs"])
  return {spec.get("key", spec["name"]): spec for spec in inputs}


def _as_array(value: Any, spec: Mapping[str, Any], is_batch: bool) -> Any:
  import numpy as np
  array = np.asarray(value)
  if array.dtype == object:  # TensorFlow hands texts over as objects.
    texts = [text if isinstance(text, bytes) else str(text).encode()
             for text in array.ravel()]
    array = np.array(texts, "S").reshape(array.shape)
  elif spec.get("type") == "float" and array.dtype.kind in "fiu":
    array = array.astype(np.float32)
  shape = spec.get("shape")
  if is_batch and shape is not None and array.ndim == len(shape) - 1:
    array = array[None]  # The dataset is not batched.
  return array if array.ndim else array[None]


def _columns(data: Any, inputs: _Inputs, is_batch: bool) -> dict[str, Any]:
  """Returns arrays by name."""
  labels: tuple[Any, ...] = ()
  if isinstance(data, tuple) and data:
    data, labels = data[0], data[1:2]
  if not isinstance(data, Mapping):
    if len(inputs) != 1:
      raise RequantError(
          f"the model has the inputs {', '.join(sorted(inputs))}: give a dict "
          "with an array for each of them")
    data = {next(iter(inputs)): data}
  columns = {name: _as_array(value, inputs.get(name, {}), is_batch)
             for name, value in data.items()}
  records = len(next(iter(columns.values()), ()))
  for label in (_as_array(value, {}, is_batch) for value in labels):
    if label.size == records and "label" not in columns:
      columns["label"] = label.reshape(-1)
  return columns


def _gathered(batches: Any, inputs: _Inputs, most: int) -> dict[str, Any]:
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
  try:
    return {name: np.concatenate([part[name] for part in parts])[:most]
            for name in parts[0]}
  except (KeyError, ValueError) as error:
    raise RequantError(
        f"the dataset's batches have other names or shapes: {error}") from error


@contextlib.contextmanager
def as_files(data: Data | None, model: str, signature: str,
             most: int) -> Iterator[str | None]:
  """Yields what the flag --data takes, while the files are there."""
  paths = [data] if isinstance(data, (str, os.PathLike)) else data
  if paths is None or isinstance(paths, list) and all(
      isinstance(path, (str, os.PathLike)) for path in paths):
    yield ",".join(map(os.fspath, paths)) if paths else None
    return
  import numpy as np
  inputs = _inputs_of(model, signature)
  if isinstance(data, (Mapping, tuple)) or hasattr(data, "__array__"):
    columns = _columns(data, inputs, is_batch=False)
  else:
    columns = _gathered(data, inputs, most)
  with tempfile.TemporaryDirectory(prefix="requant-") as folder:
    path = os.path.join(folder, "records.npz")
    np.savez(path, **columns)
    yield path
