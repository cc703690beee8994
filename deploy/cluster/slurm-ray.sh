#!/bin/bash
# A campaign on one allocation of Slurm, with Ray on all of its nodes:
#
#   sbatch deploy/cluster/slurm-ray.sh
#
# For sites where one large job starts sooner than many small ones; GPUs may be shared (--gpus 0.5).
# At the time limit, or after a node's failure, Slurm queues it again and the folders carry on.
#SBATCH --job-name=prism-table1
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --exclusive
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -u

# Jobs save when the driver is asked to stop; then this job is queued again.
requeue() {
    scancel --signal=TERM "$SLURM_JOB_ID"
    wait
    scontrol requeue "$SLURM_JOB_ID"
}
trap requeue TERM

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 20000))  # of its own: others may have Ray on the same node
export RAY_TMPDIR=/tmp/ray-$SLURM_JOB_ID  # on the node itself, and short: sockets are there
export RAY_worker_niceness=0
srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" \
    ray symmetric-run --address "$head:$port" --min-nodes "$SLURM_NNODES" --num-cpus "$SLURM_CPUS_PER_TASK" -- \
    prism campaign run table1 --on ray &
wait
