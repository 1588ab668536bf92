"""Evaluates a graph as scripts in Python do: TensorFlow's own input pipeline,
one batch after the other through a session, accuracy in NumPy.

  python evaluate.py --graph=GRAPH.pb --data=RECORDS [--batch_size=512] [--raw]

Prints the number of records, the accuracy in percent, and the seconds from the
first batch to the last. Print operations in the graph write to stderr.
"""

import argparse
import os
import time

# TensorFlow turns oneDNN off by itself on CPUs without VNNI, and int8 operations
# have no other kernels.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf

NUMERIC = 13
CATEGORICAL = 26


def parse_raw(records):
    """What the model's own placeholders take, by their names, and the labels."""
    names = [f"I{i + 1}" for i in range(NUMERIC)] + [f"C{i + 1}" for i in range(CATEGORICAL)]
    types = [tf.float32] * NUMERIC + [tf.string] * CATEGORICAL
    declared = {name: tf.io.FixedLenFeature([], type) for name, type in zip(names, types)}
    features = tf.io.parse_example(records, {**declared, "label": tf.io.FixedLenFeature([], tf.int64)})
    inputs = {f"Placeholder_{i}:0" if i else "Placeholder:0": features[name] for i, name in enumerate(names)}
    return inputs, features["label"]


def parse_preprocessed(records):
    """What graphs with fused feature columns take, and the labels."""
    features = tf.io.parse_example(
        records,
        {
            "numeric_1": tf.io.FixedLenFeature([NUMERIC], tf.float32),
            "string_1": tf.io.FixedLenFeature([2 * CATEGORICAL], tf.int64),
            "label": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    inputs = {
        "new_numeric_placeholder:0": features["numeric_1"],
        "new_categorical_placeholder:0": tf.reshape(features["string_1"], [-1, 2]),
    }
    return inputs, features["label"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--graph", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch_size", type=int, default=512)
    parser.add_argument("--raw", action="store_true", help="records that were not preprocessed")
    flags = parser.parse_args()
    tf.disable_eager_execution()
    parse = parse_raw if flags.raw else parse_preprocessed
    output = ("" if flags.raw else "import/") + "head/predictions/probabilities:0"

    definition = tf.GraphDef()
    with open(flags.graph, "rb") as file:
        definition.ParseFromString(file.read())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
        dataset = tf.data.TFRecordDataset(flags.data).batch(flags.batch_size)
        dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)
        batch = tf.data.make_one_shot_iterator(dataset).get_next()

    correct = records = 0
    with tf.Session(graph=graph) as session:
        start = time.time()
        while True:
            try:
                inputs, labels = session.run(batch)
            except tf.errors.OutOfRangeError:
                break
            probabilities = session.run(output, inputs)
            correct += int(np.sum(np.argmax(probabilities, axis=1) == labels))
            records += len(labels)
        seconds = time.time() - start
    print(f"{records} records, accuracy {100 * correct / records:.4f} %, {seconds:.2f} s")


if __name__ == "__main__":
    main()
