# --prune removes the payloads that the manifest does not name, and nothing else; a manifest that cannot be used removes
# nothing, one that places nothing removes all.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
name=-keydiff_drop_0.5-0123456789abcdef.safetensors
sed "s/fox.safetensors/fox$name/" "$DATA/pack/manifest.jsonl" >m.jsonl
sed 's/"tier": "dram", "bytes": [0-9]*/"tier": "recompute", "bytes": 0/; s/"config": "[^"]*"/"config": "none"/; s/"operation": "insert", "payload": "[^"]*"/"operation": "none", "payload": null/' m.jsonl >nothing.jsonl
sed 's/b179c9523d/0000000000/' nothing.jsonl >other.jsonl
sed '$d' nothing.jsonl >cut.jsonl
prune() {
	evp-pack "$1" "$DATA/pack/contexts.jsonl" -o pay --prune $2 $3 2>said
	echo "status $?"
	grep -e error -e removed said | sed "s/ ([^)]* [A-Za-z]*B)/ (SIZE)/; s|$MODELS/||"
}
prune nothing.jsonl
evp-pack -q m.jsonl "$DATA/pack/contexts.jsonl" -o pay || exit
printf 123 >pay/old$name && printf 12345 >"pay/gone-none-fedcba9876543210.safetensors"
mkdir pay/folder$name away && echo x >away/x$name && ln -s ../away/x$name pay/link$name && ln -s away pay/linked
mkdir pay/sub && echo x >pay/sub/x$name
echo x >pay/model.safetensors && echo x >pay/notes.txt && echo x >pay/x$name.tmp.abcdef && echo x >pay/.x$name
ls -A pay >before
prune cut.jsonl
prune other.jsonl
prune m.jsonl --list
prune m.jsonl --dry-run
ls -A pay | cmp - before && prune m.jsonl --summary s.json
grep -o '"pruned.*' s.json
ls -A pay | diff before -
prune nothing.jsonl
ls -A pay pay/sub away
