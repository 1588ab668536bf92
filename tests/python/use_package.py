"""Uses `import requant` as people do, and checks it with TensorFlow:

    python use_package.py FOLDER_OF_MAKE_MODELS
"""

import contextlib
import csv
import io
import os
import sys
import tempfile
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras  # pylint: disable=wrong-import-position
import numpy as np
import requant
import tensorflow as tf

sys.path.insert(0, sys.argv.pop())
import make_models


def answers(path, **inputs):
  outputs = tf.saved_model.load(str(path)).signatures["serving_default"](
      **{name: tf.constant(value) for name, value in inputs.items()})
  return next(iter(outputs.values())).numpy()


def make_opposites(folder):
  """Makes two models of which one says the opposite of the other."""
  x = np.random.default_rng(7).normal(size=(1000, 8)).astype(np.float32)
  inputs = keras.Input((8,), name="x")
  model = keras.Model(inputs, keras.layers.Dense(2, use_bias=False)(inputs))
  model.export(os.path.join(folder, "right"), verbose=False)
  labels = model.predict(x, verbose=0).argmax(1)
  model.set_weights([-model.get_weights()[0]])
  model.export(os.path.join(folder, "wrong"), verbose=False)
  return x, labels


class PackageTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    holder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(holder.cleanup)
    cls.folder = holder.name
    keras.utils.set_random_seed(0)
    make_models.tabular(cls.folder)
    make_models.resnet(cls.folder)
    cls.x, cls.labels = make_opposites(cls.folder)
    with np.load(cls.path("resnet/data.npz")) as arrays:
      cls.images = arrays["image"]
    with open(cls.path("tabular/data.csv"), encoding="utf-8") as file:
      rows = list(csv.DictReader(file))
    cls.columns = {
        "age": np.array([[float(row["age"])] for row in rows]),
        "income": np.array([[float(row["income"])] for row in rows]),
        "city": np.array([[row["city"]] for row in rows], object),
    }

  @classmethod
  def path(cls, name):
    return os.path.join(cls.folder, name)

  def bytes_of(self, model):
    with open(os.path.join(model, "saved_model.pb"), "rb") as file:
      return file.read()

  def quantize_images(self, records, name):
    return requant.quantize(self.path("resnet/model"), records, max_records=100,
                            output=self.path(name))

  def test_says_of_a_model_from_arrays_what_tensorflow_finds(self):
    made = requant.quantize(self.path("tabular/model"), self.columns,
                            output=self.path("tabular/int8"))
    self.assertEqual([part.name for part in made.signatures],
                     ["serving_default"])
    self.assertEqual(made.signatures[0].calibrated_records, 480)
    self.assertIn("3 of 3 matrix products", made.coverage)
    self.assertLess(made.bytes, len(self.bytes_of(made.output)))
    self.assertGreater(made.float_bytes, 0)
    # Those held back are the last.
    records = {name: column[480:] if column.dtype == object else
               column[480:].astype(np.float32)
               for name, column in self.columns.items()}
    before = answers(self.path("tabular/model"), **records)
    after = answers(made.output, **records)
    found = made.signatures[0].comparison
    self.assertEqual(found.records, 120)
    self.assertAlmostEqual(
        found.agreement, np.mean(before.argmax(1) == after.argmax(1)))
    self.assertAlmostEqual(
        found.max_output_change, np.abs(before - after).max(), places=5)
    self.assertIn("answer as when it was made",
                  requant.check_serving(made.output))

  def test_takes_a_bounded_number_of_a_dataset_batched_or_not(self):
    array = self.quantize_images(self.images[:200], "from_array")
    dataset = tf.data.Dataset.from_tensor_slices(self.images).repeat()
    for name, records in {
        "batched": dataset.batch(32),
        "single": dataset,
        "labelled": dataset.batch(32).map(lambda x: (x, x[:, 0, 0])),
        "named": dataset.batch(32).map(lambda x: {"image": x}),
        "one_hot": dataset.map(lambda x: (x, tf.one_hot(1, 10))),
        "generated": (self.images[i:i + 50] for i in range(0, 600, 50)),
    }.items():
      made = self.quantize_images(records, name)
      self.assertEqual(made.signatures, array.signatures, name)
      self.assertEqual(made.signatures[0].calibrated_records, 100)
      self.assertEqual(self.bytes_of(made.output), self.bytes_of(array.output))

  def test_takes_files(self):
    made = self.quantize_images(self.path("resnet/data.npz"), "of_file")
    self.assertEqual(made.signatures[0].comparison.records, 100)
    graph = self.quantize_images([self.path("resnet/data.npz")], "int8.pb")
    self.assertEqual(graph.signatures, ())
    self.assertGreater(os.path.getsize(graph.output), 0)

  def test_raises_the_sentence_and_writes_nothing(self):
    def refused(call, *sentences, exit_code=1):
      stderr = io.StringIO()
      with contextlib.redirect_stderr(stderr):
        with self.assertRaises(requant.RequantError) as caught:
          call()
      for sentence in sentences:
        self.assertIn(sentence, str(caught.exception))
      self.assertNotIn("\n", str(caught.exception))
      self.assertEqual(caught.exception.exit_code, exit_code)
      return stderr.getvalue()

    new = self.path("new")
    model = self.path("resnet/model")
    quantize = requant.quantize
    said = refused(lambda: quantize(model, {"picture": self.images}, output=new),
                   'no array "image"', '"picture"')
    self.assertRegex(said, "^requant quantize: .*no array")
    refused(lambda: quantize(self.path("none"), self.images, output=new), "none")
    refused(lambda: quantize(self.path("tabular/model"), self.x, output=new),
            "age, city, income")
    refused(lambda: quantize(model, [], output=new), exit_code=2)
    refused(lambda: quantize(model, iter([]), output=new), "has no records")
    refused(lambda: quantize(model, self.images, output=new, method="guess"),
            "guess", exit_code=2)
    refused(lambda: quantize(model, self.images, output=self.path("wrong")),
            "it exists")
    refused(lambda: requant.run("absent"), "absent")
    self.assertFalse(os.path.exists(new))

  def test_a_terminal_gets_what_is_said_and_the_error_a_clean_sentence(self):
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb", 0) as screen:
      with contextlib.redirect_stderr(terminal):
        with self.assertRaises(requant.RequantError) as caught:
          requant.quantize(self.path("resnet/model"), self.images[:, :3],
                           output=self.path("new"))
      self.assertRegex(str(caught.exception), r"\A[ -~]*\[12, 12, 3\][ -~]*\Z")
      self.assertIn(str(caught.exception).encode(), screen.read(1 << 16))

  def test_an_interrupt_leaves_nothing(self):
    class Interrupted(io.StringIO):
      def write(self, text):
        raise KeyboardInterrupt

    with contextlib.redirect_stderr(Interrupted()):
      with self.assertRaises(KeyboardInterrupt):
        self.quantize_images(self.path("resnet/data.npz"), "stopped")
    self.assertFalse(os.path.exists(self.path("stopped")))

  def test_a_gate_raises_with_what_was_found(self):
    right, wrong = self.path("right"), self.path("wrong")
    good = requant.evaluate(right, (self.x, self.labels), baseline=right,
                            max_accuracy_drop=1)
    self.assertEqual((good.records, good.accuracy), (1000, 1))
    with self.assertRaises(requant.GateError) as caught:
      requant.evaluate(wrong, (self.x, self.labels), baseline=right,
                       max_accuracy_drop=1)
    self.assertEqual(str(caught.exception),
                     "accuracy drops by more than 1 points")
    self.assertEqual(caught.exception.exit_code, 3)
    result = caught.exception.result
    self.assertEqual((result.accuracy, result.baseline_accuracy), (0, 1))
    self.assertEqual(result.comparison.difference_points, -100)
    table = result._repr_html_()
    self.assertIn("<th>accuracy</th>", table)
    self.assertEqual(table.count("<tr>"), 3)

  def test_a_notebook_shows_a_table_and_no_markup_of_others(self):
    made = self.quantize_images({"image": self.images}, "shown")
    table = made._repr_html_()
    self.assertIn("<td>serving_default</td><td>100</td><td>100</td>", table)
    self.assertIn(made.coverage, table)
    named = requant.Quantized(made.output, "<b>", 2, 1, made.signatures, "")
    self.assertNotIn("<b>", named._repr_html_())

  def test_runs_a_shipped_workflow_and_transforms_its_graph(self):
    done = requant.run(
        "wide_deep_fast", variables={"eval_records": 600}, only="freeze",
        output=self.path("run"), work_dir=self.path("work"))
    self.assertEqual(str(done.folder), self.path("run"))
    self.assertIn(done.outcome, ("passed", "inconclusive"))
    self.assertIn("<td>freeze</td>", done._repr_html_())
    self.assertIn("freeze", [stage["stage"] for stage in done.stages])
    # So few records leave a verdict open.
    with self.assertRaises(requant.GateError) as caught:
      requant.run("wide_deep_fast", variables={"eval_records": 20},
                  only="optimize", strict=True, output=self.path("few"),
                  work_dir=self.path("work"))
    self.assertEqual(caught.exception.result.outcome, "inconclusive")
    frozen = done.folder / "wide_deep_frozen_fp32_graph.pb"
    graph = tf.compat.v1.GraphDef.FromString(frozen.read_bytes())
    output = requant.transform(
        frozen, "remove_nodes(op=Identity)", output=self.path("new.pb"),
        outputs=["head/predictions/probabilities"])
    changed = tf.compat.v1.GraphDef.FromString(output.read_bytes())
    self.assertLess(len(changed.node), len(graph.node))


if __name__ == "__main__":
  unittest.main()
