#!/bin/bash
# Stands in for docker in tests of launch_quantization. The folder
# FAKE_ENGINE has its state: containers/NAME is a container and holds its
# session's id. It records in calls (one line each), run_argv (the arguments of
# run, NUL after each), client (the process that runs a container) and signals.
# Files there make it behave:
#   version       what --version prints
#   info_error    why info fails
#   image_error   why there is no image
#   run_error     why run fails
#   run           a shell script: what the container does
#   ignore        the container ignores signals
cd "$FAKE_ENGINE" || exit 99
PATH=/usr/bin:/bin
echo "docker $*" >>calls

fail() { # fail FILE CODE
  cat "$1" >&2
  exit "$2"
}

receive() { # receive SIGNAL CODE
  echo "$1" >>signals
  [[ -e ignore ]] && return
  rm -f "containers/$container"
  exit "$2"
}

run() {
  printf '%s\0' "$@" >run_argv
  [[ -e run_error ]] && fail run_error 125
  local word id
  for word in "$@"; do
    case $word in
      --name=*) container=${word#--name=} ;;
      --label=requant.session=*) id=${word#--label=requant.session=} ;;
    esac
  done
  echo $$ >client
  echo "$id" >"containers/$container"
  if [[ -e run ]]; then
    bash ./run
    local code=$?
    rm -f "containers/$container"
    exit $code
  fi
  # Runs until it is removed.
  trap 'receive TERM 143' TERM
  trap 'receive INT 130' INT
  trap 'receive HUP 129' HUP
  [[ -p wait ]] || mkfifo wait
  exec 9<>wait
  touch running
  while [[ -e containers/$container ]]; do read -r -t 0.05 -u 9; done
  exit 137
}

case "$1 $2" in
  "--version ") [[ -e version ]] && cat version || echo "Docker version 28.2.2, build 0" ;;
  "info --format")
    [[ -e info_error ]] && echo "|0|0" && fail info_error 1
    echo "28.2.2|4|8000000000"
    ;;
  "image inspect")
    [[ -e image_error ]] && fail image_error 1
    echo sha256:0
    ;;
  "container inspect")
    [[ -e containers/${*: -1} ]] || exit 1
    echo running
    ;;
  "ps --all")
    last=${*: -1}
    grep -lFx -- "${last##*=}" containers/* 2>/dev/null | sed 's|.*/||'
    ;;
  "rm --force") rm -f "containers/$3" ;;
  "run "*) run "$@" ;;
  *) echo "fake_engine: unknown command $*" >&2 && exit 98 ;;
esac
