"""Finds TensorFlow, and starts the programs that this package carries."""

from __future__ import annotations

import codecs
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any, NoReturn

from requant._versions import TENSORFLOW

_BIN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bin")
_DISTRIBUTION = (
    r"(?:intel_)?tensorflow(?:_cpu|_gpu|_rocm|_intel)?-(.+)\.dist-info")
_GATE_FAILED = 3


class RequantError(RuntimeError):
  """What a program said when it failed, and its exit code: 1, or 2 for usage."""

  def __init__(self, sentence: str, exit_code: int = 1):
    super().__init__(sentence)
    self.exit_code = exit_code


class GateError(RequantError):
  """A limit was exceeded. `result` is what was found."""

  def __init__(self, sentence: str, result: Any):
    super().__init__(sentence, _GATE_FAILED)
    self.result = result


def _tensorflow_folder() -> str:
  """Returns the folder of TensorFlow's libraries, without importing it."""
  spec = importlib.util.find_spec("tensorflow")
  versions = []
  for folder in (spec and spec.submodule_search_locations) or ():
    for name in sorted(os.listdir(os.path.dirname(folder))):
      if match := re.fullmatch(_DISTRIBUTION, name):
        if match[1].startswith(TENSORFLOW + "."):
          return folder
        versions.append(match[1])
  raise RequantError(
      f"TensorFlow {TENSORFLOW} is needed, and {sys.executable} has "
      f"{', '.join(versions) or 'none'}: pip install "
      f"tensorflow-cpu=={TENSORFLOW}.* (or tensorflow=={TENSORFLOW}.*)")


def _environment() -> dict[str, str]:
  folders = [_tensorflow_folder(), os.environ.get("LD_LIBRARY_PATH", "")]
  return {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, folders))}


def main() -> NoReturn:
  """Becomes the program by whose name Python was started."""
  name = os.path.basename(sys.argv[0])
  # Python ignores it, and so would the program: in `requant ... | head`.
  signal.signal(signal.SIGPIPE, signal.SIG_DFL)
  try:
    os.execve(os.path.join(_BIN, name), [name, *sys.argv[1:]], _environment())
  except (RequantError, OSError) as error:
    sys.exit(f"{name}: {error}")


def _flag(name: str, value: Any) -> str:
  if isinstance(value, (list, tuple)):
    value = ",".join(map(os.fspath, value))
  return f"--{name}={value}"


def _sentence(said: str, command: str, exit_code: int) -> str:
  """Returns the last thing that a program said, without its own name."""
  said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said).replace("\r\n", "\n")
  lines = [line.rsplit("\r", 1)[-1] for line in said.strip().split("\n")]
  start = f"requant {command}: "
  begins = [i for i, line in enumerate(lines) if line.startswith(start)]
  text = "\n".join(lines[begins[-1]:])[len(start):] if begins else lines[-1]
  return text or f"requant {command} ended with exit code {exit_code}"


def _pass_on(source: int) -> str:
  """Copies a pipe or terminal to sys.stderr up to its end, and returns it."""
  decoder = codecs.getincrementaldecoder("utf-8")("replace")
  said = ""
  while True:
    try:
      chunk = os.read(source, 65536)
    except OSError:  # Nobody has the terminal open any more.
      chunk = b""
    text = decoder.decode(chunk, final=not chunk)
    said = (said + text)[-100_000:]
    sys.stderr.write(text)
    sys.stderr.flush()
    if not chunk:
      return said


def call(command: str, *words: str, **flags: Any) -> tuple[str, str]:
  """Runs a command and passes on to sys.stderr what it says meanwhile.

  Returns what it printed, and, if a gate failed, the sentence about that.
  """
  environment = _environment()
  # Programs rewrite their line of progress on terminals only.
  is_terminal = sys.stderr.isatty()
  if is_terminal:
    columns, lines = shutil.get_terminal_size()
    environment.update(COLUMNS=str(columns), LINES=str(lines))
  line = [os.path.join(_BIN, "requant"), command, *words]
  line += [_flag(*flag) for flag in flags.items() if flag[1] is not None]
  source, sink = os.openpty() if is_terminal else os.pipe()
  with tempfile.TemporaryFile() as out, os.fdopen(source, "rb", 0):
    with os.fdopen(sink, "wb", 0):
      process = subprocess.Popen(line, env=environment, stdout=out, stderr=sink,
                                 stdin=subprocess.DEVNULL)
    try:
      said = _pass_on(source)
    except BaseException:
      process.send_signal(signal.SIGINT)
      raise
    finally:
      exit_code = process.wait()
    out.seek(0)
    printed = out.read().decode(errors="replace")
  sentence = _sentence(said, command, exit_code)
  if exit_code not in (0, _GATE_FAILED):
    raise RequantError(sentence, exit_code)
  return printed, sentence if exit_code == _GATE_FAILED else ""
