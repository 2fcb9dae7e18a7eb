#!/bin/sh
#SBATCH --array=1-8 --ntasks=1 --cpus-per-task=4 --exclusive
# Eight shards of one plan. Write the start time first: echo $(($(date +%s) + 120)) > begins.
roundtrip load http://10.0.0.7/ --plan plan.txt --threads 4 --shard "$SLURM_ARRAY_TASK_ID/8" \
    --at "$(cat begins)" --log "part-$SLURM_ARRAY_TASK_ID.hlog"
