"""Loads SavedModels in every way that TensorFlow's Python has and compares the
original models with the new ones on the same records:

    python compare_models.py FOLDER NEW

For each folder NAME below FOLDER, NAME/model is the original, NAME/NEW the new
model, and NAME/data.* a .csv, .npz, .jsonl or .tfrecord file whose columns are
named as the inputs. Prints a line for each output and way to load:

    NAME SIGNATURE OUTPUT WAY LARGEST_DIFFERENCE LARGEST_VALUE

Fails if inputs or outputs have other names, types or shapes, or if the ways do
not agree.
"""

import csv
import functools
import glob
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras  # pylint: disable=wrong-import-position
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
RECORDS = 64


def columns_of(path, names):
  """Returns the columns of a file as lists or arrays."""
  if path.endswith(".npz"):
    return dict(np.load(path))
  if path.endswith(".tfrecord"):
    columns = {name: [] for name in names}
    for record in tf.data.TFRecordDataset(path):
      example = tf.train.Example.FromString(record.numpy())
      for name, column in columns.items():
        column.append(example.features.feature[name].float_list.value[:])
    return columns
  with open(path, encoding="utf-8") as file:
    if path.endswith(".csv"):
      rows = list(csv.DictReader(file))
    else:
      rows = [json.loads(line) for line in file]
  return {name: [row[name] for row in rows] for name in rows[0]}


def read(path, inputs):
  """Returns an array for each of the inputs {name: TensorSpec}."""
  columns = columns_of(path, inputs)
  fed = {}
  for name, spec in inputs.items():
    array = np.array(columns[name][:RECORDS])
    kind = object if spec.dtype == tf.string else spec.dtype.as_numpy_dtype
    fed[name] = array.astype(kind).reshape([-1] + list(spec.shape[1:]))
  return fed


@functools.lru_cache(maxsize=2)
def load(path):
  return tf.saved_model.load(path)


def by_load(path, signature, fed):
  outputs = load(path).signatures[signature](
      **{name: tf.constant(value) for name, value in fed.items()})
  return {name: value.numpy() for name, value in outputs.items()}


def by_v1(path, signature, fed):
  with tf.Graph().as_default(), v1.Session() as session:
    meta = v1.saved_model.loader.load(session, ["serve"], path)
    definition = meta.signature_def[signature]
    return session.run(
        {name: info.name for name, info in definition.outputs.items()},
        {definition.inputs[name].name: fed[name] for name in fed})


def arguments(function, fed):
  """Returns what a restored function takes, in its own structure."""
  args, kwargs = tf.nest.map_structure(
      lambda spec: tf.constant(fed[spec.name]),
      function.concrete_functions[0].structured_input_signature)
  assert not kwargs
  return args


def named(outputs):
  if not isinstance(outputs, dict):
    outputs = {"output_0": outputs}
  return {name: value.numpy() for name, value in outputs.items()}


def by_attribute(path, signature, fed):
  """The function of the object that has the signature's name, if any."""
  model = load(path)
  if not hasattr(model, signature):
    return None
  function = getattr(model, signature)
  return named(function(*arguments(function, fed)))


def by_layer(path, signature, fed):
  """Keras's layer, which passes one argument on, perhaps a structure."""
  layer = keras.layers.TFSMLayer(path, call_endpoint=signature)
  if hasattr(load(path), signature):
    args = arguments(layer.call_endpoint_fn, fed)
  else:
    args = [tf.constant(value) for value in fed.values()]
  return named(layer(args[0])) if len(args) == 1 else None


def difference(a, b):
  if a.dtype.kind in "OSUbi":
    return float(np.mean(a != b))
  return float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64))))


def largest(a):
  return 1.0 if a.dtype.kind in "OSUbi" else float(np.max(np.abs(a)))


def specs(function):
  return {
      name: (spec.dtype, spec.shape.as_list())
      for name, spec in function.structured_input_signature[1].items()
  }


def compare(name, original, new, data):
  signatures = load(original).signatures
  ours = load(new).signatures
  assert sorted(signatures) == sorted(ours), (list(signatures), list(ours))
  for key, function in signatures.items():
    assert specs(function) == specs(ours[key]), (key, function, ours[key])
    fed = read(data, function.structured_input_signature[1])
    first = None
    for way in (by_load, by_v1, by_attribute, by_layer):
      expected, got = way(original, key, fed), way(new, key, fed)
      assert (expected is None) == (got is None), (way.__name__, key)
      if got is None:
        continue
      assert sorted(expected) == sorted(got), (list(expected), list(got))
      first = first or got
      for output in sorted(expected):
        a, b = expected[output], got[output]
        assert (a.dtype, a.shape) == (b.dtype, b.shape), (output, a, b)
        assert difference(b, first[output]) <= 1e-5, (way.__name__, output)
        print(name, key, output, way.__name__, f"{difference(a, b):.5f}",
              f"{largest(a):.3f}")


def main():
  folder, new = sys.argv[1:3]
  for path in sorted(glob.glob(os.path.join(folder, "*"))):
    if os.path.isdir(os.path.join(path, new)):
      data = [
          file for file in glob.glob(os.path.join(path, "data.*"))
          if not file.endswith(".textproto")
      ]
      compare(os.path.basename(path), os.path.join(path, "model"),
              os.path.join(path, new), data[0])


if __name__ == "__main__":
  main()
