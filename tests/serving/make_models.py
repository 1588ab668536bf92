"""Makes SavedModels as people have them, and records for each, with Keras 3:

    python make_models.py FOLDER

FOLDER/NAME/model is the SavedModel, FOLDER/NAME/data.* are 600 records. The
weights are seeded; each model learns a little, so that its answers differ from
record to record.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras  # pylint: disable=wrong-import-position
from keras import layers
import numpy as np
import tensorflow as tf

RECORDS = 600


def folder_of(root, name):
  path = os.path.join(root, name)
  os.makedirs(path, exist_ok=True)
  return path


def learn(model, inputs, labels, loss):
  model.compile("adam", loss)
  model.fit(inputs, labels, epochs=3, batch_size=64, verbose=0)


def write_csv(path, columns):
  names = list(columns)
  with open(path, "w", encoding="utf-8") as file:
    file.write(",".join(names) + "\n")
    for row in zip(*columns.values()):
      file.write(",".join(str(value) for value in row) + "\n")


def tabular(root):
  """Numbers and strings in one row each, looked up and normalized."""
  generator = np.random.default_rng(1)
  cities = np.array(["Aachen", "Bern", "Cork", "Delft"])
  columns = {
      "age": generator.uniform(18, 90, RECORDS).astype(np.float32),
      "income": generator.lognormal(10, 1, RECORDS).astype(np.float32),
      "city": cities[generator.integers(0, 4, RECORDS)],
  }
  label = (columns["age"] / 90 + (columns["city"] == "Bern") > 0.8).astype(int)
  age = keras.Input((1,), name="age", dtype="float32")
  income = keras.Input((1,), name="income", dtype="float32")
  city = keras.Input((1,), name="city", dtype="string")
  normal_age, normal_income = layers.Normalization(), layers.Normalization()
  normal_age.adapt(columns["age"][:, None])
  normal_income.adapt(columns["income"][:, None])
  lookup = layers.StringLookup(
      vocabulary=list(cities), output_mode="one_hot")
  x = layers.Concatenate()(
      [normal_age(age), normal_income(income), lookup(city)])
  for units in (64, 32):
    x = layers.Dense(units, activation="relu")(x)
  model = keras.Model(
      [age, income, city],
      layers.Dense(2, activation="softmax", name="probabilities")(x))
  learn(model, [tf.constant(columns[name][:, None]) for name in columns], label,
        "sparse_categorical_crossentropy")
  folder = folder_of(root, "tabular")
  model.export(os.path.join(folder, "model"), verbose=False)
  write_csv(os.path.join(folder, "data.csv"), dict(columns, label=label))


def resnet(root):
  """Convolutions with a shortcut, batch normalization and a dense head."""
  generator = np.random.default_rng(2)
  images = generator.normal(size=(RECORDS, 12, 12, 3)).astype(np.float32)
  labels = (images.mean((1, 2, 3)) > 0).astype(int)
  images += labels[:, None, None, None] * 0.3
  image = keras.Input((12, 12, 3), name="image")
  x = layers.Conv2D(16, 3, padding="same", use_bias=False)(image)
  x = layers.ReLU()(layers.BatchNormalization()(x))
  y = layers.Conv2D(16, 3, padding="same", use_bias=False)(x)
  x = layers.ReLU()(layers.Add()([x, layers.BatchNormalization()(y)]))
  x = layers.Flatten()(layers.AveragePooling2D(3)(x))
  x = layers.Dense(128, activation="relu")(x)
  model = keras.Model(image, layers.Dense(4, name="scores")(x))
  learn(model, images, labels,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  folder = folder_of(root, "resnet")
  model.export(os.path.join(folder, "model"), verbose=False)
  np.savez(os.path.join(folder, "data.npz"), image=images)


def transformer(root):
  """Text to tokens, attention, and dense layers on three dimensions."""
  generator = np.random.default_rng(3)
  words = np.array("the a good bad film was plot very dull fine".split())
  texts = [" ".join(words[generator.integers(0, 10, generator.integers(3, 9))])
           for _ in range(RECORDS)]
  labels = np.array([("good" in text) or ("fine" in text) for text in texts])
  vectorize = layers.TextVectorization(
      output_sequence_length=10, vocabulary=list(words))
  text = keras.Input((), name="text", dtype="string")
  x = layers.Embedding(16, 32)(vectorize(text))
  for _ in range(2):
    attended = layers.MultiHeadAttention(4, 8)(x, x)
    x = layers.LayerNormalization()(layers.Add()([x, attended]))
    inner = layers.Dense(64, activation="gelu")(x)
    x = layers.LayerNormalization()(layers.Add()([x, layers.Dense(32)(inner)]))
  x = layers.GlobalAveragePooling1D()(x)
  model = keras.Model(text, layers.Dense(1, activation="sigmoid")(x))
  learn(model, tf.constant(texts), labels.astype(np.float32),
        "binary_crossentropy")
  folder = folder_of(root, "transformer")
  model.export(os.path.join(folder, "model"), verbose=False)
  with open(os.path.join(folder, "data.jsonl"), "w", encoding="utf-8") as file:
    for line in texts:
      file.write(json.dumps({"text": line}) + "\n")


def recurrent(root):
  """An LSTM that is a loop, and a GRU that is unrolled."""
  generator = np.random.default_rng(4)
  series = generator.normal(size=(RECORDS, 12, 4)).astype(np.float32)
  labels = series[:, :, 0].sum(1)
  values = keras.Input((12, 4), name="series")
  x = layers.LSTM(16, return_sequences=True)(values)
  x = layers.GRU(16, unroll=True)(x)
  x = layers.Dense(64, activation="relu")(x)
  model = keras.Model(values, layers.Dense(1)(x))
  learn(model, series, labels, "mse")
  folder = folder_of(root, "recurrent")
  model.export(os.path.join(folder, "model"), verbose=False)
  with tf.io.TFRecordWriter(os.path.join(folder, "data.tfrecord")) as writer:
    for record in series:
      feature = tf.train.Feature(
          float_list=tf.train.FloatList(value=record.ravel()))
      example = tf.train.Example(
          features=tf.train.Features(feature={"series": feature}))
      writer.write(example.SerializeToString())


class TwoSignatures(tf.Module):
  """Layers that two signatures share, and a table that one of them needs."""

  def __init__(self):
    super().__init__()
    generator = np.random.default_rng(5)
    scaled = lambda *shape: tf.Variable(
        generator.normal(size=shape) / np.sqrt(shape[0]), dtype=tf.float32)
    self.hidden, self.bias = scaled(24, 48), scaled(48)
    self.head, self.distance = scaled(48, 3), scaled(48, 8)
    self.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["red", "green", "blue"],
                                            tf.constant([0, 1, 2], tf.int64)),
        -1)

  def embed(self, x):
    return tf.nn.relu(tf.matmul(x, self.hidden) + self.bias)

  @tf.function(input_signature=[
      tf.TensorSpec([None, 24], tf.float32, "x"),
      tf.TensorSpec([None], tf.string, "color")
  ])
  def classify(self, x, color):
    shift = tf.one_hot(self.table.lookup(color), 3)
    scores = tf.matmul(self.embed(x), self.head) + shift
    return {"scores": scores, "best": tf.argmax(scores, 1)}

  @tf.function(input_signature=[tf.TensorSpec([None, 24], tf.float32, "x")])
  def encode(self, x):
    return {"code": tf.matmul(self.embed(x), self.distance)}


def two_signatures(root):
  generator = np.random.default_rng(6)
  module = TwoSignatures()
  folder = folder_of(root, "two_signatures")
  tf.saved_model.save(
      module, os.path.join(folder, "model"),
      {"classify": module.classify, "encode": module.encode})
  x = generator.normal(size=(RECORDS, 24)).astype(np.float32)
  with open(os.path.join(folder, "data.jsonl"), "w", encoding="utf-8") as file:
    for i, row in enumerate(x.tolist()):
      color = ["red", "green", "blue", "pink"][i % 4]
      file.write(json.dumps({"x": row, "color": color}) + "\n")


def main():
  keras.utils.set_random_seed(0)
  for make in (tabular, resnet, transformer, recurrent, two_signatures):
    make(sys.argv[1])


if __name__ == "__main__":
  main()
