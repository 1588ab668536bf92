# What every bash of a session knows, in the image and in `requant shell`: the
# published documents' commands that are no programs on PATH. Sourced by
# interactive shells, and by scripts through BASH_ENV.

# In `requant shell` the user's own settings go first: they may set PATH, too.
if [[ $- == *i* && -n ${REQUANT_SHELL_PATH-} ]]; then
  [[ ! -r ~/.bashrc ]] || . ~/.bashrc
  PATH=$REQUANT_SHELL_PATH:$PATH
  PS1="(requant) ${PS1-\\$ }"
elif [[ -r ${REQUANT_USER_BASH_ENV-} ]]; then
  . "$REQUANT_USER_BASH_ENV"
fi

# Tools by the path that they have in TensorFlow's tree, whatever the folder is.
function bazel-bin/tensorflow/tools/graph_transforms/transform_graph { requant transform "$@"; }
function bazel-bin/tensorflow/tools/graph_transforms/summarize_graph { requant summarize "$@"; }

# Requant's programs need nothing that these lines of the documents would bring.
# A real pip or git does what it is told.
if ! type -P pip >/dev/null; then
  pip() {
    [[ "$*" == "install "@(neural-compressor|-r requirements.txt) ]] ||
      { echo "pip: there is no Python here" >&2 && return 1; }
    echo "pip: nothing is installed: there is no Python here, and Requant's programs need none" >&2
  }
fi
if ! type -P git >/dev/null; then
  git() {
    [[ "$*" == "clone https://github.com/IntelAI/"@(models|tools).git ]] ||
      { echo "git: there is no git here" >&2 && return 1; }
    echo "git: nothing is fetched: there is no git here, and Requant has its own of what the recipe needs" >&2
  }
fi

# A prompt that was copied with its command: "$ python convert.py". Only the shell
# itself can change its folder, and this runs in a copy of it.
command_not_found_handle() {
  [[ $1 == '$' && $# -gt 1 ]] || { echo "bash: $1: command not found" >&2 && return 127; }
  [[ $2 != cd ]] || { echo "bash: $*: without the \"\$ \" it changes the folder" >&2 && return 1; }
  "${@:2}"
}
