# Of each context the questions of the last days are kept, whatever the order of the log; --seed draws others of the same
# day; --forget leaves contexts out. Equal or missing times: as if all were asked today.
command -v python3 >/dev/null || skip "python3 is not installed"
newest() { python3 "$TOP/tests/cli/import/requests-newest.py" "$@"; }
read_log() { evp-import --requests log.jsonl --per-context 5 "$@" 2>&1 | grep 'prefix\|error'; }
for seed in 1 2 3; do
	newest make $seed >log.jsonl
	read_log -o kept$seed
done
read_log --seed 7 -o seven
read_log --forget 9 --summary s.json -o forget
read_log --forget 216h -o forget-hours
newest check kept1 kept2 kept3 seven forget forget-hours
grep -o '"contexts":[0-9]*\|"contexts_forgotten":[0-9]*' s.json
sed 's/, "timestamp": [0-9.e]*//' log.jsonl >timeless.jsonl
sed 's/"timestamp": [0-9.e]*/"timestamp": 1.6e9/' log.jsonl >equal.jsonl
for f in timeless equal; do
	evp-import -q --requests $f.jsonl --per-context 5 --forget 1 -o $f
	grep -c asked_at $f/questions.jsonl
	sed 's/,"asked_at":[0-9.e+]*//' $f/questions.jsonl | sed '1d; $d' >$f.rows
done
cmp timeless.rows equal.rows && wc -l <equal.rows
grep -v '9000000000\|d[01256]w' log.jsonl >old.jsonl
grep d6w0 log.jsonl | grep 1700000000 >new.jsonl
evp-import --requests old.jsonl new.jsonl --forget 5 -o none 2>&1 | grep error
ls none 2>&1
