#!/usr/bin/env bash
# The launcher and the node of a TrainJob: JOB FOLDER COMMAND..., and the command runs in the launcher.
# They share this machine's files, and have a network between them, and each a name, processes and
# a user of its own. To begin as root of a user namespace without a network.
set -euo pipefail
export JOB=$1 FOLDER=$2 MPI=$(dirname "$0")/../../tools/mpi
shift 2

pod() { # NAME ADDRESS WORD...
  { cat "$FOLDER/hosts"; echo "$2 $1"; } >"$FOLDER/hosts-$1"
  exec bwrap --unshare-user --unshare-uts --unshare-pid --as-pid-1 --die-with-parent \
    --uid 65532 --gid 65532 --hostname "$1" --dev-bind / / --proc /proc \
    --tmpfs /run --ro-bind "$FOLDER/ssh" /run/agentworld/ssh \
    --ro-bind "$FOLDER/passwd" /etc/passwd --ro-bind "$FOLDER/hosts-$1" /etc/hosts \
    --ro-bind "$MPI/ssh_config" /etc/ssh/ssh_config \
    --ro-bind "$MPI/sshd_config" /etc/ssh/sshd_config "${@:3}"
}

node() {
  until ip link set eth0 up 2>/dev/null; do sleep 0.02; done
  ip link set lo up
  ip address add 10.77.0.2/24 dev eth0
  pod "$JOB-node-0-0" 10.77.0.2 --clearenv --setenv PATH "$PATH" "$MPI/node.sh"
}
export -f pod node

unshare --net bash -c node &
while [ /proc/$!/ns/net -ef /proc/self/ns/net ]; do sleep 0.02; done
ip link set lo up
ip link add eth0 type veth peer name eth0 netns $!
ip address add 10.77.0.1/24 dev eth0
ip link set eth0 up
until (: >/dev/tcp/10.77.0.2/2222) 2>/dev/null; do sleep 0.02; done
pod "$JOB-launcher-0-0" 10.77.0.1 "$@"
