# Configs, models and backends as newcomers type them; lists with blanks, and given twice.
. "$TOP/tests/cli/typed/said.inc"
printf '{"id":"q0","context":"fox","split":"train","text":"Who jumps?"}\n' >q.jsonl
profile="evp-profile contexts.jsonl q.jsonl -o p.h5"
said $profile -c snapkv:drop=50
said $profile -c snapkv:90
said $profile -c snapkv:drop=150
said $profile -c fp4
said $profile -c q8_0
said $profile -c knorm:0.5+int3
said $profile -c expectedattention:0.5
said $profile -c SnapKVPress:0.5
said $profile --drop 50%
said $profile --bits 4
said $profile -m gpt2
said $profile -m http://localhost:8000/v1
said $profile --backend gpu
said evp-score table.h5 -o t.h5 --backend gpu
said evp-pack manifest.jsonl contexts.jsonl --backend gpu
said $profile --dtype fp16
evp-score table.h5 --embedder "$DATA/minibert" -j 512 -o t.h5 2>&1 | sed -n 's/share [0-9]* cores/share N cores/p'
echo 'the same list:'
configs() {
	rm -rf p.h5*
	evp-profile contexts.jsonl q.jsonl -q --model model.gguf --chat-template none --max-new-tokens 2 -o p.h5 "$@" 2>/dev/null
	evp-show p.h5 | sed -n 's/^  configs *//p; s/^  \([a-z]*:[^ ]*\) .*/\1/p' | tr '\n' ' '
	echo
}
configs -c knorm:0.5,snapkv:50%
configs -c 'knorm:0.5, snapkv:50%'
configs -c knorm:0.5 -c snapkv:0.5
configs -c ' knorm:0.5 ' --configs=snapkv:0.5
mkdir one two
evp-plan table.h5 --tiers tiers.json --alpha '1, 10' -q -o one 2>&1 && evp-plan table.h5 --tiers tiers.json --alpha 1 --alpha 10 -q -o two 2>&1
cmp one/frontier.tsv two/frontier.tsv && sed 1d one/frontier.tsv | cut -f1
