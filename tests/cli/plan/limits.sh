# Limits of evp-plan: at, below and above. 64 alphas, an alpha of 1e9, a cap on moves of 2^63 - 1 bytes, 64 tiers.
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
mkdir folder
plan --alpha 1 -o folder
plan --alpha 0.5..2/0.5 -o ranges && cut -f1 ranges/frontier.tsv | paste -s -d " "
plan --alpha 0..62,63 -o range64 && plan --alpha 0..63,64 -o range65
plan --alpha 2..1 -o down
plan --alpha 0..1/0 -o still
plan --alpha 1,2 --previous ranges/manifest-1.jsonl -o ranges
plan --min-quality 99% -o n.jsonl
plan --previous m.jsonl --max-move 10GB -o n.jsonl
for q in 0 1 1.01; do plan --min-quality $q -o n.jsonl; done
for n in 63 64 65; do
	seq "$n" | sed 's|.*|{"name":"t&","kind":"file","uri":"/t&","capacity_bytes":60000,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0.0&}|' |
		paste -s -d, | sed 's/.*/{"evp":"tiers","version":1,"tiers":[&]}/' >tiers.json
	rm -f n.jsonl
	plan --online -o n.jsonl
	[ -e n.jsonl ] && evp-plan -q table.h5 --verify n.jsonl && grep -c '"tier":"t' n.jsonl
done
ls
