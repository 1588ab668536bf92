#!/usr/bin/env python3
"""Trains the Wide & Deep model that Requant carries, and exports it."""

import argparse
import gzip
import json
import os
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

NUMERIC = ["I%d" % i for i in range(1, 14)]
CATEGORICAL = ["C%d" % i for i in range(1, 27)]
BUCKETS = 1000
EMBEDDING = 32
HIDDEN = [1024, 512, 256]
PREDICTION = "head/predictions/probabilities:0"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True,
                        help="raw TFRecords to train on")
    parser.add_argument("--eval", required=True,
                        help="raw TFRecords to evaluate on")
    parser.add_argument("--ranges", required=True,
                        help="the numeric columns' ranges, as requant dataset preprocess --ranges_out writes them")
    parser.add_argument("--out", required=True, help="a new folder for the results")
    parser.add_argument("--model", choices=["combined", "wide", "deep"], default="combined",
                        help="which parts to train (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=0, help="train on the first ROWS records (default: all)")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=512)
    parser.add_argument("--linear_learning_rate", type=float, default=0.1)
    parser.add_argument("--dnn_learning_rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1, help="of the initial weights")
    return parser.parse_args()


def read_ranges(path):
    with open(path) as f:
        columns = json.load(f)["column"]
    return {c["name"]: (c["min"], c["range"]) for c in columns}


def dataset(path, batch_size, epochs=1, rows=0):
    """Batches of (features, label) in the order of the file."""
    spec = {"label": tf.io.FixedLenFeature([], tf.int64)}
    spec.update({c: tf.io.FixedLenFeature([], tf.float32) for c in NUMERIC})
    spec.update({c: tf.io.FixedLenFeature([], tf.string) for c in CATEGORICAL})

    def parse(records):
        features = tf.io.parse_example(records, spec)
        return features, features.pop("label")

    data = tf.data.TFRecordDataset(path, buffer_size=1 << 22)
    if rows:
        data = data.take(rows)
    return data.repeat(epochs).batch(batch_size).map(parse, num_parallel_calls=1).prefetch(8)


def normalizer(low, span):
    return lambda x: (x - low) / span


def make_estimator(args, ranges, folder):
    hashed = [tf.feature_column.categorical_column_with_hash_bucket(c, BUCKETS) for c in CATEGORICAL]
    numeric = [tf.feature_column.numeric_column(c, normalizer_fn=normalizer(*ranges[c])) for c in NUMERIC]
    embedded = [tf.feature_column.embedding_column(c, EMBEDDING) for c in hashed]
    parts = {}
    if args.model != "deep":
        parts["linear_feature_columns"] = hashed
        parts["linear_optimizer"] = tf.compat.v1.train.FtrlOptimizer(args.linear_learning_rate)
    if args.model != "wide":
        parts["dnn_feature_columns"] = numeric + embedded
        parts["dnn_hidden_units"] = HIDDEN
        parts["dnn_optimizer"] = tf.compat.v1.train.AdagradOptimizer(args.dnn_learning_rate)
    config = tf.estimator.RunConfig(
        model_dir=folder, tf_random_seed=args.seed, save_summary_steps=None,
        save_checkpoints_steps=10**9, log_step_count_steps=200)
    return tf.compat.v1.estimator.DNNLinearCombinedClassifier(config=config, **parts)


def serving_inputs():
    features = {}
    for c in NUMERIC:
        features[c] = tf.compat.v1.placeholder(tf.float32, [None])
    for c in CATEGORICAL:
        features[c] = tf.compat.v1.placeholder(tf.string, [None])
    return tf.estimator.export.ServingInputReceiver(features, features)


def placeholder_names():
    return ["Placeholder:0"] + ["Placeholder_%d:0" % i for i in range(1, len(NUMERIC + CATEGORICAL))]


def predict(saved_model, path):
    """Labels and probabilities of class 1, by the exported model."""
    labels, probabilities = [], []
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.compat.v1.saved_model.loader.load(session, ["serve"], saved_model)
        batch = tf.compat.v1.data.make_one_shot_iterator(dataset(path, 1000)).get_next()
        while True:
            try:
                features, label = session.run(batch)
            except tf.errors.OutOfRangeError:
                break
            feeds = dict(zip(placeholder_names(), (features[c] for c in NUMERIC + CATEGORICAL)))
            probabilities.append(session.run(PREDICTION, feeds))
            labels.append(label)
    return np.concatenate(labels), np.concatenate(probabilities)


def auc(labels, scores):
    order = np.argsort(scores, kind="mergesort")
    _, inverse, counts = np.unique(scores[order], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive = labels[order] == 1
    p, n = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - p * (p + 1) / 2) / (p * n))


def measure(labels, probabilities, records):
    labels, probabilities = labels[:records], probabilities[:records]
    correct = int((np.argmax(probabilities, axis=1) == labels).sum())
    return {"records": len(labels), "correct": correct,
            "accuracy_percent": round(100 * correct / len(labels), 4),
            "auc": round(auc(labels, probabilities[:, 1]), 6)}


def main():
    args = parse_arguments()
    os.makedirs(args.out)
    training = os.path.join(args.out, "training")
    estimator = make_estimator(args, read_ranges(args.ranges), training)
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    estimator.train(lambda: dataset(args.train, args.batch_size, args.epochs, args.rows))
    exported = estimator.export_saved_model(os.path.join(args.out, "export"), serving_inputs).decode()
    model = os.path.join(args.out, "model")
    shutil.move(exported, model)
    labels, probabilities = predict(model, args.eval)
    result = {"model": args.model, "evaluation": [measure(labels, probabilities, n) for n in (100000, 200000)]}
    with open(os.path.join(args.out, "result.json"), "w") as f:
        json.dump(result, f, indent=2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
