#!/usr/bin/env python3
"""Runs launch_benchmark, for scripts that call python launch_benchmark.py."""

import os
import shutil
import signal
import sys

_NAME = "launch_benchmark"


def find_program():
    """Returns the program's path, or None: built, on PATH."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    built = os.path.join(root, "bazel-bin", "workflows", _NAME)
    if os.path.isfile(built) and os.access(built, os.X_OK):
        return built
    return shutil.which(_NAME)


def main():
    program = find_program()
    if program is None:
        sys.exit("launch_benchmark.py: the program launch_benchmark is not built and not on PATH: "
                 "./requant build makes it, and the image has it")
    # Python ignores SIGPIPE, which the program would inherit.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(program, [_NAME] + sys.argv[1:])
    except OSError as error:
        sys.exit("launch_benchmark.py: %s does not run: %s" % (program, error.strerror))


if __name__ == "__main__":
    main()
