"""Finds out which versions of TensorFlow run the models that Requant writes:

    ./requant build && python3 tests/serving/try_versions.py [FOLDER]

Makes Keras's models (make_models.py) and the shipped Wide & Deep, quantizes
each with --ops=portable, --ops=legacy and --target_tensorflow of the oldest
version, installs the versions one after another into environments below FOLDER
(by default below TMPDIR; with KEEP=1 they stay for another call), and runs the
models' own requests in each, with TF_ENABLE_ONEDNN_OPTS 0, 1 and unset. Prints
what went wrong, and writes runtime/servable/tensorflow_versions.textproto anew. It takes half an hour, 4 GB
for an environment at a time, a network, and a CPU with VNNI: elsewhere oneDNN is
off while the variable is unset. `./requant test` must have been run once,
because it installs the Python that makes the models.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap

WHEELS = ("2.15.1", "2.16.2", "2.17.1", "2.18.1", "2.19.1", "2.20.0", "2.21.0")
OLDEST = WHEELS[0].rpartition(".")[0]
WAYS = {
    "portable": ["--ops=portable"],
    "legacy": ["--ops=legacy"],
    "target": ["--target_tensorflow=" + OLDEST],
}
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(ROOT, "runtime/servable/tensorflow_versions.textproto")
WIDE_DEEP = os.path.join(ROOT, "workflows/wide_deep")
TWO_SIGNATURES = """jsonl { files: "data.jsonl" }
input { feature: "x" placeholder: "x" dtype: "float" shape: 24 }
input { feature: "color" placeholder: "color" dtype: "string" }
prediction { tensor: "scores" }
"""


def run(*command, **more):
  return subprocess.run(command, check=True, text=True, **more)


def program(*command):
  run(os.path.join(ROOT, "bazel-bin", command[0]), *command[1:],
      stdout=subprocess.DEVNULL)


def make_models(folder):
  """Returns {way: models}."""
  originals = os.path.join(folder, "originals")
  python = os.path.join(ROOT, ".requant/python")
  run("/usr/bin/python3", os.path.join(HERE, "make_models.py"), originals,
      env=dict(os.environ, PYTHONPATH=python))
  declaration = os.path.join(originals, "two_signatures/data.textproto")
  with open(declaration, "w", encoding="utf-8") as file:
    file.write(TWO_SIGNATURES)
  records = os.path.join(folder, "wide_deep.tfrecords")
  program("runtime/datasets/dataset", "synthesize", "--rows=1000",
          "--format=tfrecord", "--output=" + records)
  sources = {
      "wide_deep": (os.path.join(WIDE_DEEP, "model"), "--data=" + records,
                    "--dataset=" + os.path.join(WIDE_DEEP, "raw.textproto"))
  }
  for name in sorted(os.listdir(originals)):
    data = next(
        file for file in sorted(os.listdir(os.path.join(originals, name)))
        if file.startswith("data.") and not file.endswith(".textproto"))
    sources[name] = (os.path.join(originals, name, "model"),
                     "--data=" + os.path.join(originals, name, data))
  sources["two_signatures"] += ("--dataset=" + declaration,
                                "--signature=classify")
  models = {}
  for way, flags in WAYS.items():
    models[way] = []
    for name, (source, *more) in sources.items():
      target = os.path.join(folder, way, name)
      program("runtime/quantize_model", "--saved_model=" + source,
              "--output=" + target, "--overwrite", *more, *flags)
      models[way].append(target)
  return models


def install(wheel, folder):
  """Returns the Python of an environment with this TensorFlow."""
  python = os.path.join(folder, "bin/python")
  if os.path.exists(os.path.join(folder, "installed")):
    return python
  run("/usr/bin/python3", "-m", "venv", "--without-pip", folder)
  run("/usr/bin/python3", "-m", "pip", "--disable-pip-version-check",
      "--python", python, "install", "-q", "--only-binary=:all:",
      "tensorflow-cpu==" + wheel)
  with open(os.path.join(folder, "installed"), "w", encoding="utf-8"):
    pass
  return python


def call(python, onednn, *arguments):
  """Returns what try_models.py prints, without any other variables."""
  environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
  if onednn:
    environment["TF_ENABLE_ONEDNN_OPTS"] = onednn
  return run(python, os.path.join(HERE, "try_models.py"), *arguments,
             env=environment, stdout=subprocess.PIPE,
             stderr=subprocess.DEVNULL).stdout


def try_version(wheel, python, models):
  """Returns the trials as (way, value of the variable, models, right ones)."""
  trials = []
  every = [model for way in models.values() for model in way]
  for onednn in ("", "0", "1"):
    lines = call(python, onednn, *every).splitlines()
    assert len(lines) == len(every), lines
    right = {line.split()[0] for line in lines if line.split()[1] == "right"}
    for line in lines:
      print(wheel, f"TF_ENABLE_ONEDNN_OPTS={onednn or '(unset)'}", line,
            flush=True)
    for way, own in models.items():
      trials.append((way, onednn, len(own), len(right.intersection(own))))
  return trials


def words(field, values):
  text = f"{field}: [" + ", ".join(f'"{value}"' for value in values) + "]"
  return textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="    ")


def version_text(wheel, trials, described, before):
  lines = [
      "version {", f'  name: "{wheel.rpartition(".")[0]}"',
      f'  wheel: "{wheel}"',
      f"  graph_def_version: {described['graph_def_version']}"
  ]
  for way, onednn, models, right in trials:
    lines.append(f'  trial {{ made_with: "{way}" onednn: "{onednn}" '
                 f"models: {models} right: {right} }}")
  if before:
    ops, known = described["ops"], before["ops"]
    lines.append(words("new_op", sorted(set(ops) - set(known))))
    lines.append(
        words("new_attribute",
              sorted(f"{op}.{name}" for op in set(ops) & set(known)
                     for name in set(ops[op]) - set(known[op]))))
  return "\n".join(lines) + "\n}\n"


def main():
  if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
    sys.exit(__doc__)
  folder = sys.argv[1] if sys.argv[1:] else os.path.join(
      tempfile.gettempdir(), "requant_versions")
  os.makedirs(folder, exist_ok=True)
  models = make_models(folder)
  text = ("# Which versions of TensorFlow run the models that we write: written "
          "by\n# tests/serving/try_versions.py, which says how.\n")
  before = None
  for wheel in WHEELS:
    environment = os.path.join(folder, "tensorflow-" + wheel)
    python = install(wheel, environment)
    described = json.loads(call(python, "0", "--describe"))
    trials = try_version(wheel, python, models)
    text += version_text(wheel, trials, described, before)
    before = described
    if not os.environ.get("KEEP"):
      shutil.rmtree(environment)
  with open(TABLE, "w", encoding="utf-8") as file:
    file.write(text)


if __name__ == "__main__":
  main()
