"""Makes the wheel of what Bazel built: make_wheel.py OUT FILE...

The files are named from the project's top. The same files give the same bytes.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

# They start sessions, or are too generally named for everyone's PATH.
NO_SCRIPTS = ("dataset", "python", "python3")


def read(path):
  with open(path, "rb") as file:
    return file.read()


def stripped(path):
  with tempfile.TemporaryDirectory() as folder:
    copy = os.path.join(folder, "program")
    subprocess.run(["strip", "-o", copy, path], check=True)
    return read(copy)


def value(pattern, files, ending):
  path = next(path for path in files if path.endswith(ending))
  return re.search(pattern, read(path).decode()).group(1)


def members_of(files):
  """Returns {name in the wheel: (content, is a program)}."""
  version = value(r'Version\[\] = "(.*)"', files, "/requant_version.h")
  tensorflow = value(r'TENSORFLOW_VERSION="(\d+\.\d+)', files, "/versions.env")
  info = f"requant-{version}.dist-info"
  members = {}
  programs = []
  for path in files:
    name = os.path.basename(path)
    if path.startswith("bazel-out/"):
      # The container's launcher is another way to install.
      if name != "launch_quantization":
        members["requant/bin/" + name] = (stripped(path), True)
        programs.append(name)
    elif path.startswith("python/requant/"):
      members[path[len("python/"):]] = (read(path), False)
    elif path.startswith(("workflows/", "shell/")):
      members["requant/" + path] = (read(path), False)
    elif name in ("LICENSE", "THIRD_PARTY_NOTICES.md"):
      members[f"{info}/licenses/{name}"] = (read(path), False)
  scripts = "".join(f"{name} = requant._programs:main\n"
                    for name in sorted(programs) if name not in NO_SCRIPTS)
  texts = {
      "requant/_versions.py":
          "# Made by the build.\n"
          f'VERSION = "{version}"\nTENSORFLOW = "{tensorflow}"\n',
      f"{info}/METADATA":
          f"Metadata-Version: 2.4\nName: requant\nVersion: {version}\n"
          "Summary: Takes a trained TensorFlow model to a verified int8 model "
          "on CPUs\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n"
          "License-File: THIRD_PARTY_NOTICES.md\nRequires-Python: >=3.10\n",
      f"{info}/WHEEL":
          "Wheel-Version: 1.0\nGenerator: requant\nRoot-Is-Purelib: false\n"
          "Tag: py3-none-linux_x86_64\n",
      f"{info}/entry_points.txt": "[console_scripts]\n" + scripts,
  }
  members.update({n: (t.encode(), False) for n, t in texts.items()})
  return members, f"{info}/RECORD"


def main():
  members, record = members_of(sys.argv[2:])
  lines = []
  for name, (content, _) in sorted(members.items()):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    lines.append(
        f"{name},sha256={digest.decode().rstrip('=')},{len(content)}\n")
  lines.append(f"{record},,\n")
  with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, (content, is_program) in sorted(members.items()) + [
        (record, ("".join(lines).encode(), False))]:
      entry = zipfile.ZipInfo(name)
      entry.compress_type = zipfile.ZIP_DEFLATED
      entry.external_attr = (0o100755 if is_program else 0o100644) << 16
      wheel.writestr(entry, content)


if __name__ == "__main__":
  main()
