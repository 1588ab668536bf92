# For interactive shells. A caller's uid has no name in here, so the prompt has none.
[ -z "$PS1" ] && return
PS1='quantization:\w\$ '
shopt -s checkwinsize
. /opt/requant/shell/session.bash
[ -r /usr/share/bash-completion/bash_completion ] && . /usr/share/bash-completion/bash_completion
[ -r /usr/share/bash-completion/completions/requant ] && . /usr/share/bash-completion/completions/requant
