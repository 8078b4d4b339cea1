# Which prefix of a prompt is placed, in which of several folders: of a text with the chat template around it, of a bare one.
cat >contexts.jsonl <<'END'
{"id":"long","text":"The fox jumps over the dog, and the dog sleeps on. The fox is brown."}
{"id":"short","text":"The fox jumps over the dog,"}
END
sed 's/"text"/"x"/' contexts.jsonl >/dev/null
for name in a b; do mkdir $name; done
ids() { evp-show contexts.jsonl --model "$DATA/tiny.gguf" --ids "$1" | tee "$1.ids" | wc -w; }
digest=$(evp-show --json "$DATA/tiny.gguf" | sed -n 's/.*"model_digest":"\([0-9a-f]*\)".*/\1/p')
{
	echo "tier a file $PWD/a -"
	echo "tier b file $PWD/b -"
	n=$(ids short)
	echo "ids short.ids - - -"
	echo "context short $n none a"
	n=$(ids long)
	echo "ids long.ids - - -"
	echo "context long $n kivi:bits=2 b"
} >spec
"$BUILD/tests/tools/make-load" m.jsonl pay <spec && evp-load -q m.jsonl --payloads pay --namespace "$digest" || exit
find() { evp-show --model "$DATA/tiny.gguf" --find "$@" 2>&1 | sed "s/$digest/DIGEST/; s/[0-9a-f]\{64\}/TOKENS/; s|evp-payloads/[0-9a-f/]*|FILE|; s|$PWD/||"; }
printf 'The fox jumps over the dog, and the dog sleeps on. The fox is brown. Who sleeps?' >prompt
find prompt a b
printf 'The fox jumps over the dog, and then?' >prompt
find prompt a b
find prompt b
find prompt --json a b
find prompt --namespace nobody a b
find prompt --chat-template none a
echo 'what is refused:'
find absent a
find prompt absent
find prompt
find prompt --check a
evp-show --namespace x a 2>&1
evp-show --find prompt --model absent.gguf a 2>&1 || echo "status $?"
echo 'a part of a context:'
for i in $(seq 40); do printf 'The fox jumps over the dog, and the dog sleeps on. '; done >text
printf '{"id":"far","text":"%s"}\n' "$(cat text)" >contexts.jsonl
n=$(ids far)
printf '%s\n' "tier a file $PWD/a -" 'ids far.ids - - -' "context far $n none a" | "$BUILD/tests/tools/make-load" m.jsonl pay
evp-load -q m.jsonl --payloads pay --namespace "$digest" --chunks || exit
head -c 1500 text >prompt
find prompt a
echo 'what comes nearest:'
{ head -c 300 text && printf 'but then the fox sat down. ' && tail -c +300 text; } >prompt
find prompt a b
printf '{"model":"m",\n "messages":[{"role":"user","content":"The fox jumps over the dog, and then?"}]}' >body.json
find body.json a b
printf '{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"The fox"}]}' >body.json
find body.json a
printf '{"messages":[{"role":"user","content":"The fox"}],"tools":[{"type":"function"}]}' >body.json
find body.json a
printf '{"model":"m"}' >body.json
find body.json a
printf '{ is no JSON, but a message' >prompt
find prompt a
