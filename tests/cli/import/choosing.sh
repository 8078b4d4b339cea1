# Filters: names, limits, seeds; the same seed draws the same.
cp "$DATA/longbench/ten.jsonl" .
ids() { evp-import -q ten.jsonl "$@" | sed -n 's/^{"id":"\([^"]*\)".*/\1/p' | tr '\n' ' '; echo; }
ids --dataset trec,lcc
ids -d trec -d hotpotqa,qmsum
python3 - >many.jsonl <<'END'
import json
for i in range(40):
    print(json.dumps({"id": str(i), "text": f"text {i}", "dataset": "even" if i % 2 == 0 else "odd"}))
END
draw() { evp-import -q many.jsonl "$@" | sed -n 's/^{"id":"\([^"]*\)".*/\1/p' | tr '\n' ' '; }
echo "$(draw --limit 3)"
[ "$(draw --limit 5 --seed 1)" = "$(draw --limit 5 --seed 1)" ] || echo "a seed draws twice differently"
[ "$(draw --limit 5 --seed 1)" != "$(draw --limit 5 --seed 2)" ] || echo "two seeds draw the same"
[ "$(draw --limit 5 --seed 1)" = "$(draw --limit 5 --seed 1 | tr ' ' '\n' | sort -n | tr '\n' ' ' | sed 's/^ //')" ] ||
	echo "the order of the file is lost"
# what the other dataset has does not change a draw
[ "$(draw --limit 5 --seed 1 -d odd)" = "$(draw --limit 5 --seed 1 | tr ' ' '\n' | awk '$1 % 2' | tr '\n' ' ')" ] ||
	echo "a draw depends on other datasets"
evp-import ten.jsonl --dataset trek,lcc
echo $?
echo Text. >plain.txt
evp-import plain.txt --dataset foo
echo $?
evp-import ten.jsonl --dataset ,
echo $?
evp-import ten.jsonl --limit 0 2>/dev/null
echo $?
