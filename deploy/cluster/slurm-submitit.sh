#!/bin/bash
# A campaign with one Slurm job per run, started on the login node:
#
#   tmux new -d bash deploy/cluster/slurm-submitit.sh
#
# Each job waits in the queue on its own. One that is preempted, or reaches its time limit, saves, is
# queued again and goes on. If this driver ends, running jobs go on; start it again to go on, too.
set -eu
exec prism campaign run table1 --on slurm --jobs 32 --slurm partition=cpu time=240 mem=4G
