"""Quantizes a frozen graph as a user of neural-compressor does.

Static post-training quantization with the library's default configuration. The
calibration records are preprocessed Wide & Deep records (numeric_1, string_1),
fed to the placeholders of the graph whose feature columns are fused.
"""

import time

START = time.monotonic()

import argparse
import os
import sys
import tempfile

# The library's int8 operations exist in oneDNN only, which TensorFlow turns off
# by itself on CPUs without VNNI. Variables that are set stay as they are.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from neural_compressor.tensorflow import Model, StaticQuantConfig, quantize_model

NUMERIC_COLUMNS = 13
CATEGORICAL_COLUMNS = 26


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True, help="frozen fp32 graph (.pb)")
    parser.add_argument("--output", required=True, help="int8 graph to write (.pb)")
    parser.add_argument("--data", required=True, help="calibration records (TFRecord)")
    parser.add_argument("--records", type=int, default=10000, help="how many of them")
    parser.add_argument("--batch_size", type=int, default=512)
    parser.add_argument(
        "--output_node", default="import/head/predictions/probabilities"
    )
    arguments = parser.parse_args()
    # Work goes on in a temporary folder.
    for name in ("input", "output", "data"):
        setattr(arguments, name, os.path.abspath(getattr(arguments, name)))
    for path in (arguments.input, arguments.data):
        if not os.path.isfile(path):
            parser.error(f"there is no file {path}")
    return arguments


class CalibrationBatches:
    """What quantize_model takes: batch_size, and pairs (inputs, label)."""

    def __init__(self, path, records, batch_size):
        self.batch_size = batch_size
        self.batches = -(-records // batch_size)
        self._records = tf.data.TFRecordDataset(path).take(records)

    def __iter__(self):
        features = {
            "numeric_1": tf.io.FixedLenFeature([NUMERIC_COLUMNS], tf.float32),
            "string_1": tf.io.FixedLenFeature([2 * CATEGORICAL_COLUMNS], tf.int64),
        }
        for serialized in self._records.batch(self.batch_size):
            parsed = tf.io.parse_example(serialized, features)
            yield {
                "new_numeric_placeholder": parsed["numeric_1"].numpy(),
                "new_categorical_placeholder": parsed["string_1"]
                .numpy()
                .reshape(-1, 2),
            }, None


def count_records(path, most):
    records = tf.data.TFRecordDataset(path).take(most)
    return int(records.reduce(0, lambda count, _: count + 1))


def quantize(arguments):
    batches = CalibrationBatches(
        arguments.data, arguments.records, arguments.batch_size
    )
    model = Model(arguments.input)
    model.input_tensor_names = [
        "new_numeric_placeholder",
        "new_categorical_placeholder",
    ]
    model.output_tensor_names = [arguments.output_node]
    return quantize_model(model, StaticQuantConfig(), batches, batches.batches)


def main():
    arguments = parse_arguments()
    found = count_records(arguments.data, arguments.records)
    if found < arguments.records:
        sys.exit(f"{arguments.data} has {found} records, not {arguments.records}")
    loaded = time.monotonic()
    # The library leaves logs and checkpoints in the current folder.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        graph = quantize(arguments).graph_def
        os.chdir("/")
    # In one piece or not at all.
    with open(arguments.output + ".partial", "wb") as output:
        output.write(graph.SerializeToString(deterministic=True))
    os.rename(arguments.output + ".partial", arguments.output)
    now = time.monotonic()
    print(
        f"quantized in {now - loaded:.2f} s, {now - START:.2f} s with loading the "
        f"libraries ({arguments.records} records in batches of "
        f"{arguments.batch_size})"
    )


if __name__ == "__main__":
    main()
