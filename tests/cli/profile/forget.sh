# Times of questions come into FILE even if nothing is to be computed; --forget takes out contexts that nobody asks about.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
now=1750000000
contexts() { for c in "$@"; do printf '{"id":"%s","text":"The fox %s.","ask":" {question}"}\n' "$c" "$c"; done >c.jsonl; }
# question CONTEXT [DAYS AGO]
question() {
	printf '{"id":"q%s","context":"%s","split":"train","text":"What?"%s}\n' "$1" "$1" "${2:+,\"asked_at\":$((now - $2 * 86400))}"
}
profile() { evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 2 --configs none "$@"; }
show() {
	/usr/bin/python3 -c 'import h5py; t = h5py.File("p.h5"); c = t["/contexts/id"].asstr()[:]; print(*c, "-", *(f"{c[k]}:{(1.75e9 - at) / 86400:g}"
		for k, at in zip(t["/questions/context"], t["/questions/asked_at"])))'
}
contexts a b c d
{ question a 0 && question b 100 && question c && question d 20; } >q.jsonl
profile -q -o p.h5 && show
contexts a
question a -2 >q.jsonl
profile -o p.h5 2>&1 | grep nothing && show
cp p.h5 before.h5
profile -q -o p.h5 && cmp p.h5 before.h5
question a 5 >q.jsonl # an older log
profile -q -o p.h5 && cmp p.h5 before.h5
profile -q --forget 102 -o p.h5 && cmp p.h5 before.h5
profile -n --forget 101 -o p.h5 2>/dev/null && cmp p.h5 before.h5
profile --forget 101 --summary s.json -o p.h5 2>&1 | grep forget && show
grep -o '"contexts_forgotten":[0-9]*' s.json
contexts a d # the log names d, with a new question
{ question a -30 && question d 20 && question d 20 | sed 's/"qd"/"qd2"/'; } >q.jsonl
profile -q --forget 10 -o p.h5 && show && ls
echo 'shards of an interrupted run:'
contexts e f
{ question e 200 && question f -30; } >q.jsonl
profile -q -o shards.h5
mkdir p.h5.d
cp shards.h5 p.h5.d/0123456789abcdef.h5
contexts a
question a -30 >q.jsonl
profile -q --forget 60 -o p.h5 && show && ls
echo 'nothing would stay:'
printf '{"id":"z","text":"%s"}\n' "$(yes 'It was a bright cold day. ' | head -n 40 | tr -d '\n')" >c.jsonl
printf '{"id":"qz","context":"z","split":"train","text":"What?","asked_at":%d}\n' $((now + 900 * 86400)) >q.jsonl
cp shards.h5 before.h5
profile -q --forget 1 -o shards.h5 2>&1 | tail -1
cmp shards.h5 before.h5
profile -q --forget 1 -o p.h5 2>&1 | tail -1
show
echo 'milliseconds:'
sed -i 's/"asked_at":[0-9]*/"asked_at":1.75e12/' q.jsonl
profile -q --forget 1 -o p.h5 2>&1
show
