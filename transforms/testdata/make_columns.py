"""Makes columns.pb.gz: a small estimator with every kind of feature column, frozen.

Needs TensorFlow 2.15 (the last with tf.estimator), and freeze_graph built:

  python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.15.1
  venv/bin/python transforms/testdata/make_columns.py bazel-bin/graph/freeze_graph transforms/testdata/columns.pb.gz
"""

import gzip
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

fc = tf.feature_column
ROWS = 64


def columns():
    def embedding(column, dimension):
        return fc.embedding_column(column, dimension, initializer=tf.random_normal_initializer(seed=1))

    hashed = fc.categorical_column_with_hash_bucket("hashed", 10)
    hashed_too = fc.categorical_column_with_hash_bucket("hashed_too", 7)
    words = fc.categorical_column_with_vocabulary_list("words", ["red", "green", "blue"])
    words_oov = fc.categorical_column_with_vocabulary_list("words_oov", ["cat", "dog"], num_oov_buckets=3)
    number = fc.categorical_column_with_identity("identity", 6)
    number_default = fc.categorical_column_with_identity("identity_default", 6, default_value=2)
    age = fc.numeric_column("age")
    income = fc.numeric_column("income", normalizer_fn=lambda x: (x - 3.0) / 7.0)
    buckets = fc.bucketized_column(age, [1.0, 2.5, 4.0])
    crossed = fc.crossed_column(["hashed", "hashed_too"], 12)
    shared = fc.shared_embedding_columns(
        [fc.categorical_column_with_hash_bucket("home", 9), fc.categorical_column_with_hash_bucket("work", 9)],
        dimension=4, initializer=tf.random_normal_initializer(seed=2))
    deep = [embedding(hashed, 4), embedding(hashed_too, 4), embedding(words, 4), embedding(words_oov, 4),
            embedding(number, 4), embedding(buckets, 4), embedding(crossed, 4), age, income, buckets,
            fc.indicator_column(words)] + shared
    wide = [hashed, hashed_too, words, words_oov, number, number_default, buckets, crossed, income]
    return deep, wide


def features(rng):
    def pick(values):
        return rng.choice(values, ROWS)

    letters = list("abcdefghij")
    return {
        "hashed": pick(letters), "hashed_too": pick(letters), "home": pick(letters), "work": pick(letters),
        "words": pick(["red", "green", "blue"]), "words_oov": pick(["cat", "dog", "cow", "pig"]),
        "identity": pick(np.arange(6)), "identity_default": pick(np.arange(6)),
        "age": rng.uniform(0, 5, ROWS).astype(np.float32), "income": rng.uniform(0, 9, ROWS).astype(np.float32),
    }


def main(freeze_graph, path):
    rng = np.random.default_rng(1)
    data, labels = features(rng), rng.integers(0, 2, ROWS)
    deep, wide = columns()
    with tempfile.TemporaryDirectory() as folder:
        model = tf.estimator.DNNLinearCombinedClassifier(
            dnn_feature_columns=deep, linear_feature_columns=wide, dnn_hidden_units=[4],
            model_dir=folder + "/run", config=tf.estimator.RunConfig(tf_random_seed=1))
        model.train(lambda: tf.data.Dataset.from_tensor_slices((data, labels)).repeat().batch(16), steps=30)
        receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
            {name: tf.placeholder(values.dtype if values.dtype.kind in "if" else tf.string, [None],
                                            name="in_" + name) for name, values in data.items()})
        saved = model.export_saved_model(folder + "/saved", receiver, experimental_mode="infer").decode()
        subprocess.run([freeze_graph, "--input_saved_model_dir=" + saved, "--output_graph=" + folder + "/frozen.pb",
                        "--output_node_names=head/predictions/probabilities"], check=True)
        with open(folder + "/frozen.pb", "rb") as frozen, open(path, "wb") as out:
            with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed:
                packed.write(frozen.read())


if __name__ == "__main__":
    main(*sys.argv[1:])
