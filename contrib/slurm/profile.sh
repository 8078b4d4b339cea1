#!/bin/sh
#SBATCH --job-name=evp-profile
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --output=evp-profile-%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
# profile.sh N CONTEXTS QUESTIONS OUT [OPTION...] - one task of a job array: task I profiles share I of N on one GPU.
#
#   sbatch --array=1-8 contrib/slurm/profile.sh 8 contexts.jsonl questions.jsonl profiles --model /models/llama
#
# Slurm gives every task its own GPU in CUDA_VISIBLE_DEVICES. N is an argument, not the size of the array, so that the
# shares stay the same when only some tasks are submitted again: --array=3,5. A task that was cancelled, timed out or
# lost its node continues. OPTIONs are those of evp-profile.
if [ $# -lt 4 ] || [ -z "${SLURM_ARRAY_TASK_ID-}" ]; then
	echo 'usage: sbatch --array=1-N profile.sh N CONTEXTS QUESTIONS OUT [OPTION...]' >&2
	exit 2
fi
n=$1 contexts=$2 questions=$3 out=$4
shift 4
mkdir -p "$out" || exit
echo "share $SLURM_ARRAY_TASK_ID of $n on $(hostname), GPU ${CUDA_VISIBLE_DEVICES:-none}"
exec evp-profile "$contexts" "$questions" --shard "$SLURM_ARRAY_TASK_ID/$n" --threads "${SLURM_CPUS_PER_TASK:-0}" \
	-o "$out/profile-$SLURM_ARRAY_TASK_ID-of-$n.h5" "$@"
