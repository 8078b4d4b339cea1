# RULER's tasks, made of essays: the same seed gives the same bytes; contexts have the task's name and its metric scores them.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no models"
cat >essays.txt <<'EOF'
Some men fish. Others (most of them) do not! Is it "odd?" It may well be.
EOF
evp-import -q --ruler 1024 essays.txt --limit 2 --seed 3 -o a.jsonl 2>/dev/null
evp-import -q --ruler 1024 essays.txt --limit 2 --seed 3 -o b.jsonl 2>/dev/null
grep -v '"evp"' a.jsonl >a
grep -v '"evp"' b.jsonl >b
cmp a b && sed -n 's/^{"id":"\([^"]*\)".*/\1/p' a | tr '\n' ' '
echo
evp-import -q --ruler 1024 --dataset vt --limit 1 2>/dev/null | grep '"id"' | sed 's/The grass[^V]*again.../../g'
evp-import -q --ruler 1024 --dataset vt --limit 1 -o vt.jsonl 2>/dev/null && evp-qgen -q vt.jsonl --from-dataset | grep -c '"origin":"dataset"'
evp-import -q --ruler 1024 --dataset vt,niah_single_2 --limit 1 2>&1 | grep error
evp-import -q --ruler 1024 --dataset vtt --limit 1 2>&1 | grep error
evp-import -q --ruler 512 --dataset niah_multikey_3 --limit 1 2>&1 | grep error
evp-import -q --ruler 200 2>&1 | head -n 1
printf 'a\0b' | evp-import -q --ruler 1024 - 2>&1 | grep error
evp-import --ruler 1024 --requests x -o y 2>&1 | grep error
