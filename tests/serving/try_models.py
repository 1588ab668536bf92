"""Runs the requests that SavedModels carry in whichever TensorFlow this Python
has, and compares the answers with those recorded when the models were made:

    python try_models.py MODEL...

Loads each model in two ways. Prints a line for each, with the largest
difference as a share of the output's largest value, or what went wrong:

    MODEL right 0.00012
    MODEL wrong 0.31000
    MODEL fails NotFoundError: ...
    MODEL dies of signal 11

    python try_models.py --describe

prints as JSON which ops this TensorFlow has, with which attributes.
"""

import json
import os
import subprocess
import sys

import numpy as np

# A quantized layer may round a value to the next code.
TOLERANCE = 0.02


def fields(message):
  """Yields (number, value) of a protocol buffer without fixed-size fields."""
  at = 0

  def varint():
    nonlocal at
    value = shift = 0
    while True:
      byte = message[at]
      at += 1
      value |= (byte & 127) << shift
      shift += 7
      if byte < 128:
        return value

  while at < len(message):
    key = varint()
    value = varint()
    if key & 7:
      at += value
      value = message[at - value:at]
    yield key >> 3, value


def part(message, *path):
  """Returns the value at a path of field numbers."""
  for number in path:
    message = dict(fields(message)).get(number, b"")
  return message


def tensors(tf, message, number):
  """Returns the map of tensors that is a field of a message."""
  found = {}
  for field, entry in fields(message):
    if field == number:
      dtype = tf.dtypes.as_dtype(part(entry, 2, 1))
      found[part(entry, 1).decode()] = tf.io.parse_tensor(
          part(entry, 2), dtype).numpy()
  return found


def requests(tf, model):
  """Yields (signature, inputs, outputs); see prediction_log.proto."""
  path = os.path.join(model, "assets.extra", "tf_serving_warmup_requests")
  for record in tf.data.TFRecordDataset(path):
    request = part(record.numpy(), 6, 1)
    response = part(record.numpy(), 6, 2)
    yield (part(request, 1, 3).decode(), tensors(tf, request, 2),
           tensors(tf, response, 1))


def by_load(tf, model, signature, inputs):
  function = tf.saved_model.load(model).signatures[signature]
  outputs = function(
      **{name: tf.constant(value) for name, value in inputs.items()})
  return {name: value.numpy() for name, value in outputs.items()}


def by_v1(tf, model, signature, inputs):
  v1 = tf.compat.v1
  with tf.Graph().as_default(), v1.Session() as session:
    meta = v1.saved_model.loader.load(session, ["serve"], model)
    definition = meta.signature_def[signature]
    return session.run(
        {name: info.name for name, info in definition.outputs.items()},
        {definition.inputs[name].name: inputs[name] for name in inputs})


def difference(recorded, answer):
  if recorded.dtype.kind in "OSUbi":
    return float(np.mean(recorded != answer))
  largest = float(np.max(np.abs(recorded))) or 1.0
  # A NaN is infinitely different.
  by = float(np.max(np.abs(recorded.astype(np.float64) - answer))) / largest
  return by if by == by else float("inf")


def verdict(tf, model):
  worst, count = 0.0, 0
  for signature, inputs, outputs in requests(tf, model):
    for way in (by_load, by_v1):
      answers = way(tf, model, signature, inputs)
      for name, recorded in outputs.items():
        worst = max(worst, difference(recorded, answers[name]))
        count += 1
  if count == 0:
    return "fails without an answer to compare"
  return f"{'right' if worst <= TOLERANCE else 'wrong'} {worst:.5f}"


def describe():
  # pylint: disable=import-outside-toplevel
  import tensorflow as tf
  from tensorflow.core.framework import op_def_pb2
  from tensorflow.python.client import pywrap_tf_session as session
  listed = session.TF_GetBuffer(session.TF_GetAllOpList())
  ops = {
      op.name: [attribute.name for attribute in op.attr]
      for op in op_def_pb2.OpList.FromString(listed).op
  }
  print(json.dumps({
      "graph_def_version": tf.version.GRAPH_DEF_VERSION, "ops": ops}))


def work(models):
  import tensorflow as tf  # pylint: disable=import-outside-toplevel
  for model in models:
    try:
      text = verdict(tf, model)
    except Exception as error:  # pylint: disable=broad-except
      words = " ".join(str(error).split())
      text = f"fails {type(error).__name__}: {words[:300]}"
    print(model, text, flush=True)


def main():
  os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
  if sys.argv[1] == "--describe":
    describe()
    return
  if sys.argv[1] == "--work":
    work(sys.argv[2:])
    return
  models = sys.argv[1:]
  # A model may take its process along; the others then get a new one.
  while models:
    child = subprocess.run([sys.executable, __file__, "--work"] + models,
                           stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(child.stdout)
    models = models[len(child.stdout.splitlines()):]
    if models:
      died = f"signal {-child.returncode}" if child.returncode < 0 else "exit"
      print(models.pop(0), "dies of", died)
    sys.stdout.flush()


if __name__ == "__main__":
  main()
