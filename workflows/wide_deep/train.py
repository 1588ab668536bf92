#!/usr/bin/env python3
"""Trains the Wide & Deep model that Requant carries, and exports it.

A genuine tf.estimator model, which TensorFlow had up to 2.15. These commands made
the files of this folder (in the top folder of the tree; see README.md):

  python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.15.1
  ./requant dataset synthesize --rows=1000000 --format=tfrecord --out=train.tfrecords \\
      --summary_out=train.json
  ./requant dataset synthesize --rows=1000000 --out=train.csv
  ./requant dataset preprocess --out=/dev/null --ranges_out=ranges.json train.csv
  ./requant dataset synthesize --rows=100000 --split=eval --out=/dev/null \\
      --summary_out=eval_100k.json
  ./requant dataset synthesize --rows=200000 --split=eval --format=tfrecord \\
      --out=eval.tfrecords --summary_out=eval_200k.json
  venv/bin/python workflows/wide_deep/train.py --train=train.tfrecords \\
      --eval=eval.tfrecords --ranges=ranges.json --out=trained \\
      --summaries train.json eval_100k.json eval_200k.json

Results are in the folder that --out names: model/ (the combined model's SavedModel),
graph.pbtxt.gz (its training graph), model.json (what was measured), and a folder
for each of the three models, which are trained alike. An existing model is not
trained again.
"""

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
PREDICTION = "head/predictions/probabilities:0"
MODELS = ["combined", "wide", "deep"]
EVALUATED = [100000, 200000]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, help="raw records to train on")
    parser.add_argument("--eval", required=True, help="raw records to evaluate on")
    parser.add_argument("--ranges", required=True,
                        help="the numeric columns' ranges, as requant dataset preprocess "
                             "--ranges_out writes them")
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS,
                        help="which to train: both parts or one (default: all three)")
    parser.add_argument("--summaries", nargs="*", default=[],
                        help="what requant dataset synthesize --summary_out wrote of the "
                             "records; goes into model.json")
    parser.add_argument("--rows", type=int, default=1000000,
                        help="train on the first ROWS records (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--batch_size", type=int, default=512, help="(default: %(default)s)")
    parser.add_argument("--buckets", type=int, default=1000,
                        help="of each categorical column (default: %(default)s)")
    parser.add_argument("--embedding", type=int, default=32,
                        help="dimensions of each embedding (default: %(default)s)")
    parser.add_argument("--hidden", type=int, nargs="+", default=[1024, 512, 256],
                        help="units of the hidden layers (default: 1024 512 256)")
    parser.add_argument("--dnn_optimizer", choices=["adagrad", "adam"], default="adagrad",
                        help="of the deep part (default: %(default)s)")
    parser.add_argument("--linear_learning_rate", type=float, default=0.3,
                        help="of Ftrl for the wide part (default: %(default)s)")
    parser.add_argument("--dnn_learning_rate", type=float, default=0.012,
                        help="of the deep part; falls to a hundredth (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the initial weights (default: %(default)s)")
    return parser.parse_args()


def read_ranges(path):
    """Returns {column: (min, range)}."""
    with open(path) as f:
        return {c["name"]: (c["min"], c["range"]) for c in json.load(f)["column"]}


def dataset(path, batch_size, epochs=1, rows=-1):
    """Returns batches of (features, label) in the order of the file."""
    spec = {"label": tf.io.FixedLenFeature([], tf.int64)}
    spec.update({c: tf.io.FixedLenFeature([], tf.float32) for c in NUMERIC})
    spec.update({c: tf.io.FixedLenFeature([], tf.string) for c in CATEGORICAL})

    def parse(records):
        features = tf.io.parse_example(records, spec)
        return features, features.pop("label")

    records = tf.data.TFRecordDataset(path, buffer_size=1 << 22).take(rows).repeat(epochs)
    return records.batch(batch_size).map(parse, num_parallel_calls=1).prefetch(8)


def normalizer(low, span):
    return lambda x: (x - low) / span


def dnn_optimizer(args):
    steps = args.rows * args.epochs // args.batch_size
    rate = tf.compat.v1.train.polynomial_decay(
        args.dnn_learning_rate, tf.compat.v1.train.get_global_step(), steps,
        end_learning_rate=args.dnn_learning_rate / 100)
    if args.dnn_optimizer == "adam":
        return tf.compat.v1.train.AdamOptimizer(rate)
    return tf.compat.v1.train.AdagradOptimizer(rate)


def make_estimator(args, model, folder):
    ranges = read_ranges(args.ranges)
    hashed = [tf.feature_column.categorical_column_with_hash_bucket(c, args.buckets)
              for c in CATEGORICAL]
    numeric = [tf.feature_column.numeric_column(c, normalizer_fn=normalizer(*ranges[c]))
               for c in NUMERIC]
    embedded = [tf.feature_column.embedding_column(c, args.embedding) for c in hashed]
    parts = {}
    if model != "deep":
        parts["linear_feature_columns"] = hashed
        parts["linear_optimizer"] = tf.compat.v1.train.FtrlOptimizer(args.linear_learning_rate)
    if model != "wide":
        parts["dnn_feature_columns"] = numeric + embedded
        parts["dnn_hidden_units"] = args.hidden
        parts["dnn_optimizer"] = lambda: dnn_optimizer(args)
    config = tf.estimator.RunConfig(
        model_dir=folder, tf_random_seed=args.seed, save_summary_steps=None,
        save_checkpoints_steps=10**9, log_step_count_steps=200)
    # This is TensorFlow 1's class, as for the published model; its head is named "head".
    return tf.compat.v1.estimator.DNNLinearCombinedClassifier(config=config, **parts)


def serving_inputs():
    """Placeholder, Placeholder_1 ... Placeholder_38: I1 ... I13, then C1 ... C26."""
    features = {}
    for c in NUMERIC:
        features[c] = tf.compat.v1.placeholder(tf.float32, [None])
    for c in CATEGORICAL:
        features[c] = tf.compat.v1.placeholder(tf.string, [None])
    return tf.estimator.export.ServingInputReceiver(features, features)


def placeholder_names():
    return ["Placeholder:0"] + ["Placeholder_%d:0" % i
                                for i in range(1, len(NUMERIC + CATEGORICAL))]


def predict(saved_model, path):
    """Returns labels and the exported model's probabilities of both classes."""
    labels, probabilities = [], []
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.compat.v1.saved_model.loader.load(session, ["serve"], saved_model)
        batches = dataset(path, 1000, rows=max(EVALUATED))
        batch = tf.compat.v1.data.make_one_shot_iterator(batches).get_next()
        while True:
            try:
                features, label = session.run(batch)
            except tf.errors.OutOfRangeError:
                return np.concatenate(labels), np.concatenate(probabilities)
            feeds = dict(zip(placeholder_names(), (features[c] for c in NUMERIC + CATEGORICAL)))
            probabilities.append(session.run(PREDICTION, feeds))
            labels.append(label)


def auc(labels, scores):
    """Returns the area under the ROC curve by ranks; ties count half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive = labels == 1
    p, n = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - p * (p + 1) / 2) / (p * n))


def measure(labels, probabilities, records):
    labels, probabilities = labels[:records], probabilities[:records]
    correct = int((np.argmax(probabilities, axis=1) == labels).sum())
    return {"records": len(labels), "correct": correct,
            "accuracy_percent": round(100 * correct / len(labels), 4),
            "auc": round(auc(labels, probabilities[:, 1]), 6)}


def train(args, model):
    """Trains, exports and evaluates one model; returns what was measured."""
    folder = os.path.join(args.out, model)
    result = os.path.join(folder, "result.json")
    if not os.path.exists(result):
        shutil.rmtree(folder, ignore_errors=True)
        estimator = make_estimator(args, model, os.path.join(folder, "training"))
        estimator.train(lambda: dataset(args.train, args.batch_size, args.epochs, args.rows))
        exported = estimator.export_saved_model(os.path.join(folder, "export"), serving_inputs)
        shutil.move(exported.decode(), os.path.join(folder, "model"))
        labels, probabilities = predict(os.path.join(folder, "model"), args.eval)
        with open(result, "w") as f:
            json.dump([measure(labels, probabilities, n) for n in EVALUATED], f)
    with open(result) as f:
        return json.load(f)


def keep(args):
    """Copies the parts of the combined model that are kept in git."""
    folder = os.path.join(args.out, "combined")
    shutil.copytree(os.path.join(folder, "model"), os.path.join(args.out, "model"),
                    dirs_exist_ok=True)
    with open(os.path.join(folder, "training", "graph.pbtxt"), "rb") as graph, \
            open(os.path.join(args.out, "graph.pbtxt.gz"), "wb") as out, \
            gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        shutil.copyfileobj(graph, packed)


def commands():
    """Returns the command lines at the top of this file."""
    text = __doc__.replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line.startswith("  ")]


def main():
    args = parse_arguments()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    os.makedirs(args.out, exist_ok=True)
    record = {"commands": commands(), "arguments": sys.argv[1:], "tensorflow": tf.__version__}
    for name in ("rows", "epochs", "batch_size", "buckets", "embedding", "hidden",
                 "dnn_optimizer", "linear_learning_rate", "dnn_learning_rate", "seed"):
        record["training_" + name] = getattr(args, name)
    record["data"] = []
    for path in args.summaries:
        with open(path) as f:
            record["data"].append(json.load(f))
    for model in args.models:
        record[model] = train(args, model)
    if "combined" in args.models:
        keep(args)
    with open(os.path.join(args.out, "model.json"), "w") as f:
        json.dump(record, f, indent=2)
        f.write("\n")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
