#!/bin/sh
# nightly.sh - the steps of evp-nightly as a script, to be changed: without budget, journal and metrics.
#
#   0 3 * * * cd /var/lib/evp && ./nightly.sh 2>>nightly.log
set -e
umask 077
M=Qwen/Qwen2.5-7B-Instruct
[ ! -e manifest.jsonl ] || previous="--previous manifest.jsonl --move-cost 0.5"
evp-import --requests --partial --halves requests.log* --model $M --min-tokens 512 --half-life 72 --hash-ids -q -o mine || [ $? = 1 ]
evp-profile mine/contexts.jsonl mine/questions.jsonl --model $M -q -o profile.h5 || [ $? = 1 ]
evp-score profile.h5 -q -o table.h5
# shellcheck disable=SC2086 # words
evp-plan table.h5 --tiers tiers.json --access mine/access.jsonl --access-before mine/access-before.jsonl --alpha 10 --pack-weight 0.1 $previous -o tonight.jsonl
# shellcheck disable=SC2086
evp-plan table.h5 --verify tonight.jsonl $previous
evp-pack tonight.jsonl mine/contexts.jsonl --model $M --tiers tiers.json -q -o payloads || [ $? = 1 ]
evp-load tonight.jsonl --payloads payloads --wait 600 --verify || [ $? = 1 ]
mv tonight.jsonl manifest.jsonl
