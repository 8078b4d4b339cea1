#!/bin/sh
# node.sh CONTEXTS QUESTIONS OUT [OPTION...] - without Slurm: one evp-profile per GPU of this machine, each with its share.
#
#   contrib/slurm/node.sh contexts.jsonl questions.jsonl profiles --model /models/llama
#
# Uses the GPUs of CUDA_VISIBLE_DEVICES if it is set, otherwise all GPUs of nvidia-smi. Started again, it continues. The
# status is 1 if a share failed; OUT has a log of each share. OPTIONs are those of evp-profile.
[ $# -ge 3 ] || { echo 'usage: node.sh CONTEXTS QUESTIONS OUT [OPTION...]' >&2; exit 2; }
contexts=$1 questions=$2 out=$3
shift 3
gpus=${CUDA_VISIBLE_DEVICES-$(nvidia-smi --query-gpu=index --format=csv,noheader)}
gpus=$(echo "$gpus" | tr ',\n' '  ')
n=$(echo "$gpus" | wc -w)
[ "$n" -gt 0 ] || { echo 'node.sh: there is no GPU here' >&2; exit 5; }
mkdir -p "$out" || exit
threads=$(($(nproc) / n))
i=0 processes=
for gpu in $gpus; do
	i=$((i + 1))
	CUDA_VISIBLE_DEVICES=$gpu evp-profile "$contexts" "$questions" --shard "$i/$n" --threads $((threads > 0 ? threads : 1)) \
		-o "$out/profile-$i-of-$n.h5" "$@" >"$out/profile-$i-of-$n.log" 2>&1 </dev/null &
	processes="$processes $!"
done
# shellcheck disable=SC2064 # these processes
trap "kill $processes; exit 1" INT TERM
i=0 status=0
for process in $processes; do
	i=$((i + 1))
	wait "$process" || { echo "node.sh: share $i of $n failed: $out/profile-$i-of-$n.log" >&2; status=1; }
done
exit $status
