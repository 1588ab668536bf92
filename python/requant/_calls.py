"""Calls commands of requant as a shell would."""

from __future__ import annotations

import codecs
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from requant._programs import RequantError, program

_GATE_FAILED = 3


class GateError(RequantError):
  """A limit was exceeded. `result` is what was found."""

  def __init__(self, sentence: str, result: Any):
    super().__init__(sentence, _GATE_FAILED)
    self.result = result


def flags_of(values: Mapping[str, Any]) -> list[str]:
  """Returns {"max_records": 100} as ["--max_records=100"], without None."""
  flags = []
  for name, value in values.items():
    if isinstance(value, bool):
      value = "true" if value else "false"
    elif isinstance(value, (list, tuple)):
      value = ",".join(map(os.fspath, value))
    if value is not None:
      flags.append(f"--{name}={value}")
  return flags


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
    except OSError:  # So ends a terminal that nobody has open any more.
      chunk = b""
    text = decoder.decode(chunk, final=not chunk)
    said = (said + text)[-100_000:]
    sys.stderr.write(text)
    sys.stderr.flush()
    if not chunk:
      return said


def call(command: str, flags: list[str]) -> tuple[str, str]:
  """Runs a command and passes on to sys.stderr what it says meanwhile.

  Returns what it printed, and, if a gate failed, the sentence about that.
  """
  path, environment = program("requant")
  # Programs rewrite their line of progress on terminals only.
  is_terminal = sys.stderr.isatty()
  if is_terminal:
    size = shutil.get_terminal_size()
    environment.update(COLUMNS=str(size.columns), LINES=str(size.lines))
  source, sink = os.openpty() if is_terminal else os.pipe()
  with tempfile.TemporaryFile() as out, os.fdopen(source, "rb", 0):
    try:
      process = subprocess.Popen([path, command, *flags], env=environment,
                                 stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=sink)
    finally:
      os.close(sink)
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
