"""Makes a SavedModel of more than 2 GB: make_large_model.py FOLDER [ROWS SIZE]

Two embedding tables of ROWS rows, of which one can be read in eight bits and
the other is summed up in float, and layers with matrices of SIZE x SIZE. The
records for it are FOLDER/data.npz.
"""
import sys

import numpy as np
import tensorflow as tf

LAYERS = 18
COLUMNS = 64


def uniform(shape, most, seed):
  return tf.random.stateless_uniform(shape, (seed, 1), -most, most)


class Large(tf.Module):

  def __init__(self, rows, size):
    super().__init__()
    self.read = tf.Variable(uniform([rows, COLUMNS], 1, 0), name="read")
    self.summed = tf.Variable(uniform([rows, COLUMNS], 1, 1), name="summed")
    self.first = tf.Variable(uniform([2 * COLUMNS, size], 0.2, 2), name="first")
    self.matrices = [
        tf.Variable(uniform([size, size], (6 / size)**0.5, 3 + i),
                    name=f"matrix_{i}") for i in range(LAYERS)]
    self.last = tf.Variable(uniform([size, 4], 0.1, 99), name="last")

  @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, "word"),
                                tf.TensorSpec([None, 8], tf.int64, "words")])
  def __call__(self, word, words):
    summed = tf.reduce_sum(tf.gather(self.summed, words), 1)
    x = tf.concat([tf.gather(self.read, word), summed], 1)
    for matrix in [self.first] + self.matrices:
      x = tf.nn.relu(tf.matmul(x, matrix))
    return {"scores": tf.nn.softmax(tf.matmul(x, self.last))}


def main(folder, rows="2200000", size="4096"):
  model = Large(int(rows), int(size))
  tf.saved_model.save(model, folder + "/model", signatures=model.__call__)
  generator = np.random.default_rng(1)
  np.savez(folder + "/data.npz",
           word=generator.integers(int(rows), size=200),
           words=generator.integers(int(rows), size=(200, 8)))


main(*sys.argv[1:])
