# For interactive shells. A caller's uid has no name in here, so the prompt has none.
[ -z "$PS1" ] && return
PS1='quantization:\w\$ '
shopt -s checkwinsize
. /opt/requant/shell/session.bash
[ -r /usr/share/bash-completion/bash_completion ] && . /usr/share/bash-completion/bash_completion
eval "$(requant completion bash)"
for program in /opt/requant/bin/*; do
  case ${program##*/} in
    python | python3 | requant-self-test) ;;
    *) complete -o default -F _requant "${program##*/}" ;;
  esac
done
unset program
