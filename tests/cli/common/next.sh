# Each tool of the way from texts to payloads ends with the command that comes next, ready to be pasted: from import to the
# report by these commands alone, with blanks in a name. With -q, and for results on standard output, nothing is said.
mkdir texts models
cp "$DATA/tiny.gguf" models/SmolLM2-135M-Instruct.Q4_1.gguf
cp -r "$DATA/minibert" models/all-MiniLM-L6-v2
export EVP_MODELS=$PWD/models
echo "The fox jumps over the dog, and the dog sleeps on. The fox is brown, and the dog is grey." >texts/fox.txt
next() { sed -n 's/^evp[-a-z]*: next: //p' "$1"; }

# follow COMMAND: runs it, then what it says comes next, and so on. Options that only this test needs are added.
follow() {
	hint=$1
	while [ "$hint" ]; do
		echo "$hint"
		case $hint in
		evp-profile*) more='--chat-template none --configs knorm:drop=0.5 --max-new-tokens 2' ;;
		evp-tiers*) more=',read=5G,write=5G,latency=0' ;;
		*) more= ;;
		esac
		hint=$(echo "$hint" | sed "s|/dev/shm/evp,capacity=1G|$PWD/dram,capacity=1G$more|")
		case $hint in *,latency*) more= ;; esac
		sh -c "$hint $more" >out 2>err || { cat err; break; }
		hint=$(next err)
	done
}
follow "evp-import texts -o 'my contexts.jsonl'"
ls report.html
follow 'evp-plan table.h5 --tiers tiers.json --alpha 1,2 -o sweep'
printf '{"id":"q0","context":"fox","split":"train","text":"Who jumps?"}\n{"id":"q1","context":"fox","split":"test","text":"Who sleeps?"}\n' >q.jsonl
echo 'with a model and without a question of its own:'
evp-profile 'my contexts.jsonl' q.jsonl --model "$DATA/tiny.gguf" --chat-template none --configs knorm:drop=0.5 --max-new-tokens 2 -o p.h5 2>err
next err
evp-score p.h5 --tiers tiers.json -o t.h5 2>err
next err
evp-plan t.h5 --tiers tiers.json -o m.jsonl 2>err
next err | sed "s|$DATA/||"
echo 'nothing:'
evp-plan t.h5 --tiers tiers.json 2>err >m2.jsonl
next err
evp-import -q texts -o c.jsonl 2>err
next err
evp-import texts 2>err | evp-qgen - -o asked.jsonl 2>>err
next err
