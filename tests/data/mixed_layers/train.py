#!/usr/bin/env python3
"""Trains the model of tests/data/mixed_layers and freezes it.

These commands made the files of this folder (in the top folder of the tree):

  python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
  bazel build //tests/support:write_mixed_records
  bazel-bin/tests/support/write_mixed_records train 60000 train.npz
  bazel-bin/tests/support/write_mixed_records eval 20000 eval.npz
  venv/bin/python tests/data/mixed_layers/train.py --train=train.npz --eval=eval.npz \\
      --out=tests/data/mixed_layers

The folder that --out names gets frozen.pb and model.json, which tells what was measured.
"""

import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

# Sizes that are no multiples of 4, nor of each other.
SIGNAL, CONTEXT, WIDE, PROJECTED, HIDDEN, MIXED, CLASSES = 21, 10, 75, 46, 61, 34, 5
PREDICTION = "head/probabilities"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, help="records to train on (.npz)")
    parser.add_argument("--eval", required=True, help="records to evaluate on (.npz)")
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--epochs", type=int, default=12, help="(default: %(default)s)")
    parser.add_argument("--batch_size", type=int, default=250, help="(default: %(default)s)")
    parser.add_argument("--learning_rate", type=float, default=0.003,
                        help="of Adam; falls to a hundredth (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1,
                        help="of initial weights and order (default: %(default)s)")
    return parser.parse_args()


def kernel(inputs, outputs, transposed=False):
    shape = [outputs, inputs] if transposed else [inputs, outputs]
    return tf.get_variable("kernel", shape, initializer=tf.initializers.glorot_uniform())


def bias(size):
    return tf.get_variable("bias", [size], initializer=tf.initializers.zeros())


def build():
    """Two towers whose outputs are matched, and a head. Returns the logits."""
    signal = tf.placeholder(tf.float32, [None, SIGNAL], name="signal")
    context = tf.placeholder(tf.float32, [None, CONTEXT], name="context")

    with tf.variable_scope("tower/signal/dense"):
        x = tf.matmul(signal, kernel(SIGNAL, WIDE), name="MatMul")
        x = tf.nn.relu(tf.nn.bias_add(x, bias(WIDE), name="BiasAdd"), name="Relu")
    with tf.variable_scope("tower/context/dense"):
        y = tf.matmul(context, kernel(CONTEXT, WIDE), name="MatMul")
        # The bias on the left, added by AddV2.
        y = tf.nn.relu(tf.raw_ops.AddV2(x=bias(WIDE), y=y, name="add"), name="Relu")

    with tf.variable_scope("tower/shared"):
        projection = kernel(WIDE, PROJECTED)
    with tf.variable_scope("tower/signal/projection"):
        x = tf.matmul(x, projection, name="MatMul")
        x = tf.nn.relu6(tf.nn.bias_add(x, bias(PROJECTED), name="BiasAdd"), name="Relu6")
    with tf.variable_scope("tower/context/projection"):
        y = tf.matmul(y, projection, name="MatMul")
        y = tf.nn.bias_add(y, bias(PROJECTED), name="BiasAdd")

    with tf.variable_scope("match"):
        # Every signal against every context of the batch; a record's own match is on
        # the diagonal, so that a record's result does not depend on its neighbours.
        matches = tf.matmul(x, y, transpose_b=True, name="MatMul")
        own = tf.expand_dims(tf.linalg.diag_part(matches, name="own"), 1, name="column")
        own = tf.multiply(own, 1 / PROJECTED, name="mean")

    features = tf.concat([x, y, own], 1, name="head/features")
    with tf.variable_scope("head/hidden"):
        z = tf.matmul(features, kernel(2 * PROJECTED + 1, HIDDEN, transposed=True),
                      transpose_b=True, name="MatMul")
        z = tf.nn.bias_add(z, bias(HIDDEN), name="BiasAdd")
        z = tf.multiply(tf.nn.relu(z, name="Relu"), tf.sigmoid(z, name="gate"), name="gated")
    with tf.variable_scope("head/mix"):
        z = tf.nn.relu(tf.matmul(z, kernel(HIDDEN, MIXED), name="MatMul"), name="Relu")
    with tf.variable_scope("head/logits"):
        z = tf.matmul(z, kernel(MIXED, CLASSES), name="MatMul")
        z = tf.nn.bias_add(z, bias(CLASSES), name="BiasAdd")
    tf.nn.softmax(z, name=PREDICTION)
    return z


def feeds(records, rows):
    return {name + ":0": records[name][rows] for name in ("signal", "context")}


def train(session, logits, records, arguments):
    labels = tf.placeholder(tf.int64, [None])
    rate = tf.placeholder(tf.float32, [])
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.AdamOptimizer(rate).minimize(loss)
    session.run(tf.global_variables_initializer())
    order = np.random.RandomState(arguments.seed)
    count = len(records["label"])
    steps = arguments.epochs * (count // arguments.batch_size)
    done = 0
    for _ in range(arguments.epochs):
        rows = order.permutation(count)
        for start in range(0, count - arguments.batch_size + 1, arguments.batch_size):
            batch = rows[start:start + arguments.batch_size]
            feed = feeds(records, batch)
            feed[labels] = records["label"][batch]
            feed[rate] = arguments.learning_rate * 0.01 ** (done / steps)
            session.run(step, feed)
            done += 1


def correct(session, records):
    count = 0
    for start in range(0, len(records["label"]), 500):
        rows = slice(start, start + 500)
        predicted = session.run(PREDICTION + ":0", feeds(records, rows)).argmax(1)
        count += int((predicted == records["label"][rows]).sum())
    return count


def main():
    arguments = parse_arguments()
    tf.disable_v2_behavior()
    tf.set_random_seed(arguments.seed)
    logits = build()
    # As it is served: without what training adds.
    served = tf.get_default_graph().as_graph_def()
    records = dict(np.load(arguments.train))
    evaluated = dict(np.load(arguments.eval))
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Session(config=config) as session:
        train(session, logits, records, arguments)
        measured = {"train": {"records": len(records["label"]),
                              "correct": correct(session, records)},
                    "eval": {"records": len(evaluated["label"]),
                             "correct": correct(session, evaluated)}}
        frozen = tf.graph_util.convert_variables_to_constants(session, served, [PREDICTION])
    frozen.library.Clear()
    with open(os.path.join(arguments.out, "frozen.pb"), "wb") as f:
        f.write(frozen.SerializeToString(deterministic=True))
    with open(os.path.join(arguments.out, "model.json"), "w") as f:
        json.dump(measured, f, indent=2)
        f.write("\n")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
