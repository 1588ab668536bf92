#!/usr/bin/env python3
"""Runs launch_quantization, for scripts that call python launch_quantization.py."""

import os
import shutil
import signal
import sys

_NAME = "launch_quantization"


def find_program():
    """Returns the program's path, or None: beside this file, built, on PATH."""
    here = os.path.dirname(os.path.realpath(__file__))
    root = os.path.dirname(here)
    for path in (os.path.join(here, _NAME),
                 os.path.join(root, "bazel-bin", "launch", _NAME)):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which(_NAME)


def main():
    program = find_program()
    if program is None:
        sys.exit("launch_quantization.py: the program launch_quantization is neither beside this file "
                 "nor on PATH: build it (bazel build //launch:launch_quantization), or take it from the "
                 "image (docker run --rm quantization:latest launcher > launch_quantization; "
                 "chmod +x launch_quantization)")
    # Python ignores SIGPIPE, which the program would inherit.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(program, [_NAME] + sys.argv[1:])
    except OSError as error:
        sys.exit("launch_quantization.py: %s does not run: %s" % (program, error.strerror))


if __name__ == "__main__":
    main()
