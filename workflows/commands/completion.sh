# Completion for requant in bash and zsh, which `requant completion` prints. What it
# offers comes from the program's own help. It never sets up or builds anything.

# Prints the program that $1 calls: for a clone's front door, the one that it built.
_requant_program() {
  local file=$1
  case $file in
    "~/"*) file=$HOME/${file#??} ;;
    */*) ;;
    *) file=$(command -v -- "$file") ;;
  esac
  file=$(readlink -f -- "$file")
  [ ! -f "${file%/*}/third_party/setup.sh" ] || file=${file%/*}/bazel-bin/workflows/requant
  echo "$file"
}

# _requant_words CALLED N COMMAND PREVIOUS WORD: prints a line for each text that the
# Nth word after the program, WORD, may be. Called in a subshell. No such text has
# anything that a shell expands, also where a workflow's file is named so.
_requant_words() {
  local program
  program=$(_requant_program "$1")
  case $program in
    */bazel-bin/workflows/requant)
      export REQUANT_HOME="${program%/bazel-bin/*}"
      [ "$2" != 1 ] || printf '%s\n' setup build test
      ;;
  esac
  [ -f "$program" ] && [ -x "$program" ] || return
  case ${program##*/}:$2:$3:$5 in
    requant:1:*:-*) printf '%s\n' --help --version ;;
    requant:1:* | requant:2:help:*)
      echo help
      "$program" commands | sed -n 's/^  \([a-z_]*\) .*/\1/p'
      ;;
    requant:2:completion:*) printf '%s\n' bash zsh ;;
    requant:*:-*) "$program" "$3" --help | sed -n 's/^  \(--[a-z0-9_]*=\{0,1\}\).*/\1/p' ;;
    *:-*) "$program" --help | sed -n 's/^  \(--[a-z0-9_]*=\{0,1\}\).*/\1/p' ;;
    requant:*:run:* | requant:*:plan:*)
      [ "$4" = "=" ] || "$program" run --help | sed -n '/^Workflows/,$s/^  \([A-Za-z0-9_.-]*\)  .*/\1/p'
      ;;
  esac 2>/dev/null </dev/null
}

if [ -n "${ZSH_VERSION-}" ]; then
  _requant() {
    local -a found
    ! compset -P '*=' || { _files; return; }
    found=(${(f)"$(_requant_words "$words[1]" $((CURRENT - 1)) "${words[2]-}" "$words[CURRENT-1]" "$words[CURRENT]")"})
    compadd -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
    (( compstate[nmatches] )) || _files
  }
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -D; }
  compdef _requant requant
else
  _requant() {
    local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=($(compgen -W "$(_requant_words "${COMP_WORDS[0]}" "$COMP_CWORD" "${COMP_WORDS[1]-}" \
      "${COMP_WORDS[COMP_CWORD - 1]}" "$word")" -- "$word"))
    [[ ${COMPREPLY-} != *= ]] || compopt -o nospace
  }
  complete -o default -F _requant requant
fi
