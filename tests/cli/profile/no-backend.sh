# A backend that does not exist ends with a status of its own; a dtype that does not exist is a wrong command line.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
for option in '--backend gpu' '--backend tpu' '--dtype f99'; do
	# shellcheck disable=SC2086 # two words
	evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs none -q -o p.h5 $option
	echo "$option: $?"
done
