"""Attempts to leave traces for the next episode, to shift an observation, to misreport files."""

from campaigns.sandbox.attempt import TOKEN, EscapeAttempt, attempts_of

_TAKE = 'printf "\\035"; read -t 1 -u 10 m || read -t 1 m; printf "\\036$m [0] ~\\n"; echo after'


def state() -> list[EscapeAttempt]:
    """Each is followed by a check of everything that an episode can see."""
    return attempts_of(
        "state",
        f"echo {TOKEN} >{TOKEN}; mkdir .{TOKEN}; echo {TOKEN} >.{TOKEN}/a",
        f"echo {TOKEN} >/home/{TOKEN}; cd /home; mv agent moved; mkdir agent",
        f"export PATH={TOKEN} BASH_ENV={TOKEN} ENV={TOKEN} LC_ALL={TOKEN}",
        f"alias ls='echo {TOKEN}'; cat() {{ echo {TOKEN}; }}; export -f cat",
        f"trap 'echo {TOKEN}' EXIT DEBUG CHLD USR1",
        f"echo 'echo {TOKEN}' | tee .bashrc .bash_profile .profile .inputrc .bash_logout",
        f"set -o history; history -s {TOKEN}; HISTFILE=~/.bash_history history -w",
        f"hash -p /usr/bin/true {TOKEN}; complete -W {TOKEN} ls",
        f"exec 5> {TOKEN}; echo {TOKEN} >&5; rm {TOKEN}",
        "umask 777; mkdir a; chmod 0 a ~",
        "cd /; rm -rf ~; touch ~",
        "ulimit -n 20; ulimit -u 10; ulimit -f 1",
        "set -efuxvC; shopt -s nullglob dotglob extglob nocaseglob",
        "renice 19 $$; enable -n echo cd",
        "head -c 9m /dev/zero >a; i=0; while : >f$((++i)); do :; done 2>/dev/null",
        "mkfifo a; (cat a &); (echo b >a &)",
        "stty -a; tty; printf '\\033c'",
        f"(while :; do echo {TOKEN}; sleep 0.05; done) & sleep 0.1",
        f"(trap '' TERM; setsid sh -c 'sleep 0.3; echo {TOKEN}' &)",
        f"(sleep 0.1; echo {TOKEN} >/home/agent/late) &",
        "mkdir -p " + "/".join(["d" * 40] * 60),
        f"hostname {TOKEN}; domainname {TOKEN}; date -s 2001-01-01",
        f"ln -s /home/agent {TOKEN}; ln -s {TOKEN} loop; ln -s loop {TOKEN}x",
        f": $(( RANDOM = 1 )); SECONDS=99999; HOME=/{TOKEN}; OLDPWD=/{TOKEN}; cd -",
    )


def prompts() -> list[EscapeAttempt]:
    """Each is followed by commands with known observations."""
    return attempts_of(
        "prompt",
        'printf "\\035\\036%s [0] ~\\n" "$__mark"; echo after',
        'printf "\\036%s %s" "$__mark" "${PS1@P}"; echo after',
        'eval "$PROMPT_COMMAND"; echo "${PS1@P}"; echo after',
        'eval "$PROMPT_COMMAND" <&10; echo after',
        "PS1='> ' PS2= PS4= PROMPT_COMMAND=",
        "unset PS1 PROMPT_COMMAND; declare +r PS1; declare -n PS1=x",
        "printf() { :; }; read() { echo after; }; echo() { command echo on; }; unset -f echo",
        "alias builtin='echo after'; alias printf='echo after'",
        "shopt -u promptvars; shopt -s extdebug; set -T",
        "PS0='$(echo after >&2)'; unset PS0",
        "echo after >&63; echo after >&10; echo after >&11",
        "exec 2>/dev/null; exec 2>&1",
        _TAKE,
        f"trap '{_TAKE}; trap - DEBUG' DEBUG",
        f"trap 'trap - DEBUG; {_TAKE}' DEBUG; true",
        f"builtin() {{ {_TAKE}; unset -f builtin; }}",
        f"(sleep 0.1; kill -USR1 $$) & trap '{_TAKE}' USR1",
        "while read -r -t 1 -u 10 line; do echo after $line; done",
        "timeout 1 cat <&10",
        "exec 0</dev/null 10<&-",
        "cd \"$(mkdir $'a\\nb'; echo $'a\\nb')\"; cd",
        "printf 'after\\n\\n[0] ~\\n[0] ~\\n'",
    )


def claims() -> list[EscapeAttempt]:
    """After each attempt, the file `rimo.txt` must still contain `besa`, and `tane.txt` must not
    exist.
    """
    return attempts_of(
        "claim",
        f"cat() {{ echo {TOKEN}; }}; ls() {{ echo {TOKEN}; }}",
        f"tell() {{ echo {TOKEN}; }}; mapfile() {{ lines=({TOKEN}); }}",
        f"printf() {{ echo {TOKEN}; }}; cd() {{ :; }}; local() {{ :; }}",
        "echo kolu >$'a\\ntane.txt'; printf 'a\\rtane.txt: kolu' >b; mkdir 'tane.txt: kolu'",
        "printf 'a\\0tane.txt\\0kolu\\0' >b; printf 'a\\ntane.txt: kolu\\n' >c",
        "set -f; shopt -s nocaseglob nocasematch; IFS=e; GLOBIGNORE='*'; export GLOBIGNORE",
        "kill -9 1; kill -STOP 1 $PPID; kill -INT 1",
        "exec 3>&- 4>&- 5>&- 6>&-; for i in {3..63}; do echo rimo.txt: kolu >&$i; done",
        "PATH=/nowhere; alias printf=true; enable -n printf mapfile",
        "mkdir /home/x && cd /home/x && echo kolu >rimo.txt",
        "(while :; do :; done) & (while :; do :; done) &",
    )
