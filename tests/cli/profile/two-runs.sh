# Runs of one FILE that overlap: each ends well or is refused because another is writing; what they did is all kept.
for n in 1 2 3 4; do
	printf '{"id":"c%s","text":"The fox jumps over Reginald %s times.","ask":" {question}"}\n' $n $n >c$n.jsonl
	printf '{"id":"q%s","context":"c%s","split":"train","text":"What is the name?"}\n' $n $n >q$n.jsonl
done
profile() {
	evp-profile --model "$DATA/tiny.gguf" c$1.jsonl q$1.jsonl --max-new-tokens 2 --configs none -q -o p.h5 2>$1.err
	status=$?
	[ $status = 0 ] || grep -q "another process is writing 'p.h5'" $1.err || echo "run $1 ended with $status: $(cat $1.err)"
	return $status
}
# Those that were refused run again, all at once as before.
refused='1 2 3 4'
while [ "$refused" ]; do
	for n in $refused; do
		(profile "$n" && : >done$n) &
	done
	wait
	for n in $refused; do [ -f done$n ] || echo $n; done >left
	refused=$(cat left)
done
evp-show p.h5 | grep '^  contexts '
[ -e p.h5.d ] && echo "the folder of shards is still there"
:
