# Limits of evp-plan's options: at, below and above. 64 alphas, an alpha of 1e9, a cap on moves of 2^63 - 1 bytes.
cp "$DATA/table.h5" "$DATA/tiers.json" .
plan() {
	evp-plan -q table.h5 --tiers tiers.json "$@" 2>err
	echo "status $?, $(wc -l <err) lines of error: $(cut -c -60 err)"
}
alphas() { seq -s, 1 "$1"; }
for n in 63 64 65; do
	plan --alpha "$(alphas $n)" -o "sweep$n"
	[ -d "sweep$n" ] && grep -c . "sweep$n/frontier.tsv"
done
plan --alpha 1e9 -o m.jsonl
plan --alpha 1.1e9 -o too-much.jsonl
plan --alpha 0 -o m.jsonl
plan --alpha -0.1 -o too-little.jsonl
plan --alpha 1,,2 -o x
for size in 9223372036854775807 9223372036854775808 8388607T 8388608T 0; do plan --previous m.jsonl --max-move $size -o n.jsonl; done
plan --max-move 1 -o n.jsonl
for q in 0 1 1.01; do plan --min-quality $q -o n.jsonl; done
ls
