"""Writes the SavedModels in this folder, which freeze_test reads.

Run by hand, with tensorflow-cpu==2.15.1 (the last that still writes what
tf.estimator and TensorFlow 1 programs write) and no other argument:

    python make_saved_models.py

The weights are seeded; only names that TensorFlow numbers by itself and the
fingerprints change from run to run.
"""

import os
import shutil

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

v1 = tf.compat.v1
FOLDER = os.path.dirname(os.path.abspath(__file__))


def weights(*shape, seed=0):
  generator = np.random.RandomState(seed)
  return generator.uniform(-1, 1, shape).astype(np.float32)


def fresh(name):
  path = os.path.join(FOLDER, name)
  shutil.rmtree(path, ignore_errors=True)
  return path


def tidy(path):
  """Drops what nothing here reads."""
  for name in ("fingerprint.pb", "keras_metadata.pb"):
    if os.path.exists(os.path.join(path, name)):
      os.remove(os.path.join(path, name))
  for name in ("assets", "variables"):
    folder = os.path.join(path, name)
    if os.path.isdir(folder) and not os.listdir(folder):
      os.rmdir(folder)
  model = saved_model_pb2.SavedModel()
  with open(os.path.join(path, "saved_model.pb"), "rb") as file:
    model.ParseFromString(file.read())
  for meta in model.meta_graphs:
    meta.meta_info_def.ClearField("stripped_op_list")
  with open(os.path.join(path, "saved_model.pb"), "wb") as file:
    file.write(model.SerializeToString(deterministic=True))


def signature(inputs, outputs):
  return {
      "serving_default":
          v1.saved_model.signature_def_utils.predict_signature_def(
              inputs, outputs)
  }


def save_v1(name, build, extra_tags=None):
  """Saves what `build` makes, with a training op beside it."""
  path = fresh(name)
  with tf.Graph().as_default(), v1.Session() as session:
    inputs, outputs = build()
    loss = tf.reduce_sum(list(outputs.values())[0])
    step = v1.train.get_or_create_global_step()
    trainable = v1.trainable_variables()
    if trainable:
      v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
    session.run([v1.global_variables_initializer(), v1.tables_initializer()])
    builder = v1.saved_model.Builder(path)
    builder.add_meta_graph_and_variables(
        session, ["serve"],
        signature_def_map=signature(inputs, outputs),
        assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
        main_op=v1.tables_initializer(),
        strip_default_attrs=True)
    if extra_tags:
      builder.add_meta_graph(
          extra_tags, signature_def_map=signature(inputs, outputs))
    builder.save()
  tidy(path)


def ref_variables():
  """VariableV2 nodes of several types."""
  x = v1.placeholder(tf.float32, [None, 4], "x")
  with v1.variable_scope("dense", use_resource=False):
    kernel = v1.get_variable("kernel", initializer=weights(4, 3))
    bias = v1.get_variable("bias", initializer=weights(3, seed=1))
  scale = v1.get_variable(
      "scale",
      initializer=tf.constant([1, 2, 4], tf.bfloat16),
      use_resource=False,
      trainable=False)
  flag = v1.get_variable(
      "flag",
      initializer=tf.constant(True),
      use_resource=False,
      trainable=False)
  label = v1.get_variable(
      "label",
      initializer=tf.constant(["no", "", "yes"]),
      use_resource=False,
      trainable=False)
  y = tf.matmul(x, kernel) + bias
  y = v1.where(tf.logical_and(flag, y > 0), y, 0.1 * y)
  y = tf.multiply(y, tf.cast(scale, tf.float32), name="y")
  named = tf.gather(label, tf.argmax(y, 1), name="named")
  return {"x": x}, {"y": y, "label": named}


def resource_variables():
  """VarHandleOps that are read, gathered from and switched."""
  x = v1.placeholder(tf.float32, [None, 4], "x")
  ids = v1.placeholder(tf.int64, [None], "ids")
  with v1.variable_scope("net", use_resource=True):
    kernel = v1.get_variable("kernel", initializer=weights(4, 3))
    table = v1.get_variable("table", initializer=weights(7, 3, seed=1))
    shift = v1.get_variable("shift", initializer=weights(3, seed=2))
  v1.disable_control_flow_v2()
  rows = tf.nn.embedding_lookup(table, ids)
  pairs = tf.stack([ids, tf.zeros_like(ids)], 1)
  single = tf.gather_nd(table, pairs)
  y = tf.matmul(x, kernel) + rows + single[:, None]
  y = v1.cond(
      tf.reduce_sum(x) > 0, lambda: y + shift.read_value(), lambda: y * 2.0)
  y = v1.while_loop(
      lambda i, value: i < 3,
      lambda i, value: (i + 1, value * 0.5 + shift.read_value()),
      (tf.constant(0), y))[1]
  return {"x": x, "ids": ids}, {"y": tf.identity(y, name="y")}


def partitioned_variables():
  """One matrix in three ref parts, another in two resource parts."""
  ids = v1.placeholder(tf.int64, [None], "ids")
  x = v1.placeholder(tf.float32, [None, 6], "x")
  with v1.variable_scope("ref", use_resource=False):
    table = v1.get_variable(
        "table", [10, 3],
        initializer=v1.random_uniform_initializer(-1, 1, seed=1),
        partitioner=v1.fixed_size_partitioner(3))
  with v1.variable_scope("resource", use_resource=True):
    kernel = v1.get_variable(
        "kernel", [6, 3],
        initializer=v1.random_uniform_initializer(-1, 1, seed=2),
        partitioner=v1.fixed_size_partitioner(2, axis=1))
  rows = v1.nn.embedding_lookup(table, ids, partition_strategy="div")
  y = tf.add(tf.matmul(x, kernel.as_tensor()), rows, name="y")
  return {"ids": ids, "x": x}, {"y": y}


def vocabulary_v1():
  """A vocabulary file and a table of constants."""
  path = os.path.join("/tmp", "words.txt")
  with open(path, "w") as file:
    file.write("red\ngreen\nblue\n")
  words = v1.placeholder(tf.string, [None], "words")
  with v1.variable_scope("net", use_resource=True):
    rows = v1.get_variable("rows", initializer=weights(5, 2))
  ids = tf.lookup.StaticVocabularyTable(
      tf.lookup.TextFileInitializer(
          path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
          tf.lookup.TextFileIndex.LINE_NUMBER), 2).lookup(words)
  back = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(
          tf.constant([0, 1, 2], tf.int64), tf.constant(["r", "g", "b"])),
      "?").lookup(ids)
  y = tf.nn.embedding_lookup(rows, ids, name="y")
  return {"words": words}, {"y": y, "back": tf.identity(back, "back_out")}


class Layer(tf.Module):

  def __init__(self, rows, columns, seed):
    super().__init__()
    self.kernel = tf.Variable(weights(rows, columns, seed=seed))
    self.bias = tf.Variable(weights(columns, seed=seed + 1), name="shift")

  @tf.function
  def __call__(self, x):
    return tf.matmul(x, self.kernel) + self.bias


class Functions(tf.Module):
  """Nested functions, and variables read inside a branch and a loop."""

  def __init__(self):
    super().__init__()
    self.layers = [Layer(4, 5, 0), Layer(5, 3, 2)]
    self.table = tf.Variable(weights(7, 3, seed=4), name="table")
    self.calls = tf.Variable(0, dtype=tf.int64, trainable=False)

  @tf.function(input_signature=[
      tf.TensorSpec([None, 4], tf.float32, "x"),
      tf.TensorSpec([None], tf.int32, "ids")
  ])
  def serve(self, x, ids):
    self.calls.assign_add(1)
    y = x
    for layer in self.layers:
      y = tf.nn.relu(layer(y))
    if tf.reduce_sum(x) > 0:
      y += tf.gather(self.table, ids)
      if tf.reduce_sum(y) > 2:
        y += self.layers[1].bias
    else:
      y -= self.layers[1].bias
    i = tf.constant(0)
    while i < 3:
      y = y * 0.5 + self.layers[1].bias
      i += 1
    return {"y": y, "norm": tf.norm(y, axis=1)}


class VocabularyV2(tf.Module):
  """A vocabulary file in a static table, and a mutable one in the checkpoint."""

  def __init__(self, path):
    super().__init__()
    self.words = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER), -1)
    self.prices = tf.lookup.experimental.MutableHashTable(
        tf.string, tf.float32, -1.0)
    self.prices.insert(["red", "blue"], [0.25, 4.0])

  @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
  def serve(self, words):
    return {
        "ids": self.words.lookup(words),
        "price": self.prices.lookup(words),
    }


def save_v2(name, module):
  path = fresh(name)
  tf.saved_model.save(
      module,
      path,
      signatures=module.serve,
      options=tf.saved_model.SaveOptions(save_debug_info=False))
  tidy(path)


def main():
  save_v1("ref_variables", ref_variables, extra_tags=["train", "cpu"])
  save_v1("resource_variables", resource_variables)
  save_v1("partitioned_variables", partitioned_variables)
  save_v1("vocabulary_v1", vocabulary_v1)
  save_v2("functions", Functions())
  path = os.path.join("/tmp", "words.txt")
  with open(path, "w") as file:
    file.write("red\ngreen\nblue\n")
  save_v2("vocabulary_v2", VocabularyV2(path))
  os.remove(path)


if __name__ == "__main__":
  main()
