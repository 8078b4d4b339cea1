[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no models"
# A full disk, played by a limit on file sizes: one sentence, nothing half written; and with room it goes on.
printf '{"id":"a","text":"The quick brown fox jumps over the lazy dog. Its name is Reginald."}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
(ulimit -f 4 && evp-profile c.jsonl q.jsonl --max-new-tokens 2 --configs none -q -o p.h5)
echo "status $?" >&2
[ -e p.h5 ] && echo "a file was left"
evp-profile c.jsonl q.jsonl --max-new-tokens 2 --configs none -q -o p.h5
