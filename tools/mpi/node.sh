#!/bin/sh
# A node of a TrainJob, where mpirun starts its processes by ssh. Told to end, it gives them notice
# and lasts until mpirun knows that they have ended, which its daemon tells it.
trap 'pkill -USR1 -f agentworld.steps.member' TERM
/usr/sbin/sshd -De &
wait $!
status=$?
while pgrep -x orted >/dev/null; do sleep 0.1; done
exit $status
