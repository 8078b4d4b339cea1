# A mapped file that becomes shorter while a tool reads it ends the tool with status 3 and a sentence, not with a signal: what
# was said before is there, and nothing has the output's name. Other SIGBUS are what they were.
case $BUILD in
*asan) export ASAN_OPTIONS=verify_asan_link_order=0 ;;
esac
# Small files are read, not mapped.
cut() {
	{ cat "$DATA/tiny.gguf"; head -c 100000 /dev/zero; } >"$name"
	CUT=$PWD/$name LD_PRELOAD=$BUILD/tests/plugins/cut.so "$@" 2>said
	printf 'status %s, %s\n' $? "$(sed "s|$PWD|HERE|" said | cat -v)"
}
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
name=m.gguf
cut evp-show --check c.jsonl m.gguf
cut evp-profile c.jsonl q.jsonl -m m.gguf --configs none --max-new-tokens 2 -q -o p.h5
name=$(printf 'ö \033[1m\n.gguf')
cut evp-show --check "$name"
ls ./*.h5 2>/dev/null
mkfifo pipe
evp-import pipe 2>/dev/null &
exec 3>pipe
kill -BUS $!
wait $!
echo "status $?" # of a signal
