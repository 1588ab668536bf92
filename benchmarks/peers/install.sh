#!/usr/bin/env bash
# Installs neural-compressor for TensorFlow into a virtual environment of its
# own: install.sh [FOLDER], by default .requant/peers. Prints the environment's
# Python; does nothing when it is there in these versions.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
folder=${1:-$here/../../.requant/peers}
python=/usr/bin/python3

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
exec 9>"$folder/lock" && flock 9
if ! cmp -s "$here/requirements.txt" "$folder/installed"; then
  echo "peers: installing neural-compressor-tf (300 MB to fetch, 1.6 GB on disk)" >&2
  rm -rf "$folder/venv" "$folder/installed"
  # Debian has venv without python3-venv, but for the copy of pip.
  "$python" -m venv --without-pip "$folder/venv"
  "$python" -m pip --disable-pip-version-check --python "$folder/venv/bin/python" install -q --no-deps \
    --only-binary=:all: --require-hashes -r "$here/requirements.txt" >&2 || {
    echo "peers: pip could not install $here/requirements.txt: see above; a network is needed once" >&2
    exit 1
  }
  cp "$here/requirements.txt" "$folder/installed"
fi
echo "$folder/venv/bin/python"
