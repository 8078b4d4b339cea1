[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no models"
# Refused before anything runs, with the names; cut only when told so.
yes 'It was a bright cold day in April, and the clocks were striking thirteen.' | head -n 600 | tr '\n' ' ' |
	sed 's/.*/{"id":"long","text":"&"}/' >c.jsonl
printf '\n{"id":"short","text":"Two."}\n' >>c.jsonl
printf '{"id":"q%s","context":"%s","split":"train","text":"What?"}\n' 1 long 2 short >q.jsonl
evp-profile c.jsonl q.jsonl -o p.h5
echo "status $?" >&2
evp-profile c.jsonl q.jsonl --truncate --dry-run -o p.h5
status=$?
ls p.h5* 2>/dev/null
exit $status
