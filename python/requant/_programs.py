"""Finds TensorFlow and starts the programs that this package carries."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from typing import NoReturn

from requant._versions import TENSORFLOW

_BIN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bin")
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")


class RequantError(RuntimeError):
  """What a program said when it failed, and its exit code: 1, or 2 for usage."""

  def __init__(self, sentence: str, exit_code: int = 1):
    super().__init__(sentence)
    self.exit_code = exit_code


def _tensorflow_folder() -> str:
  """Returns the folder of TensorFlow's libraries, without importing it."""
  spec = importlib.util.find_spec("tensorflow")
  versions = []
  for folder in (spec and spec.submodule_search_locations) or ():
    for name in sorted(os.listdir(os.path.dirname(folder))):
      match = re.fullmatch(
          r"(?:intel_)?tensorflow(?:_cpu|_gpu|_rocm|_intel)?-(.+)\.dist-info",
          name)
      if match:
        versions.append(match[1])
    if any(version.startswith(TENSORFLOW + ".") for version in versions) and all(
        os.path.exists(os.path.join(folder, name)) for name in _LIBRARIES):
      return folder
  found = f"version {', '.join(versions)}" if versions else "none"
  raise RequantError(
      f"TensorFlow {TENSORFLOW} is needed, and {sys.executable} has {found}: "
      f"pip install tensorflow-cpu=={TENSORFLOW}.* "
      f"(or tensorflow=={TENSORFLOW}.*)")


def program(name: str) -> tuple[str, dict[str, str]]:
  """Returns the path of a program and the environment that it needs."""
  folders = [_tensorflow_folder(), os.environ.get("LD_LIBRARY_PATH", "")]
  variables = {"LD_LIBRARY_PATH": ":".join(filter(None, folders))}
  return os.path.join(_BIN, name), {**os.environ, **variables}


def main() -> NoReturn:
  """Becomes the program by whose name Python was started."""
  name = os.path.basename(sys.argv[0])
  try:
    path, environment = program(name)
    os.execve(path, [name, *sys.argv[1:]], environment)
  except (RequantError, OSError) as error:
    sys.exit(f"{name}: {error}")
