# Several logs, of which one cannot be read, wholly or at its end: the others count, what can be read of it too, and the status is
# 1. A line that the server has not written to its end is silence, and few broken ones are only counted.
command -v python3 >/dev/null || skip "python3 is not installed"
cat >make.py <<'END2'
import json, sys
for i in range(int(sys.argv[1]), int(sys.argv[2])):
    text = " ".join(f"word{j}" for j in range(300))
    print(json.dumps({"model": "m", "timestamp": 1.7e9 + i, "messages": [{"role": "user", "content": f"{text}\n\nWhat is {i}?"}]}))
END2
try() {
	timeout 20 evp-import -q --requests "$@" -o out --summary s.json 2>said
	echo "status $?"
	grep -v 'no train questions' said
	python3 -c 'import json; r = json.load(open("s.json")).get("result", {}); print({k: r[k] for k in ("requests", "rows_left_out", "logs_unread") if k in r})'
}
python3 make.py 0 30 >a
python3 make.py 30 60 >b
mkdir folder
mkfifo pipe
python3 make.py 60 4000 | gzip >whole.gz
size=$(wc -c <whole.gz)
head -c $((size / 2)) whole.gz >cut.gz
echo 'not there, a folder, a pipe:'; try a nowhere b
try a folder b
try a pipe b
echo 'alone:'; try pipe
try cut.gz
try - <a
try /dev/stdin <a
cat a | try /dev/stdin
echo 'cut:'; try a cut.gz b | sed 's/requests.: [0-9]*/requests: N/'
grep -c '"text"' out/contexts.jsonl
echo 'less than half:'
{ head -c 15 whole.gz; head -c 200000 /dev/urandom; } >bad.gz
try a bad.gz
try nowhere folder
echo 'not written to its end:'
{ cat a && printf '{"model":"m","timestamp":17003000'; } >open
try open
{ cat a && printf '{"model":"m","timestamp":1.7e9,"tools":[{}],"messages":[{"role":"user","content":"x"}]}'; } >open
try open
echo 'one of 31 lines, one of 131 lines:'
{ cat a && echo '{"model":"m","timestamp":17003000'; } >broken
try broken
python3 make.py 0 130 >many && echo '{"model":"m","timestamp":17003000' >>many
try many
echo 'evp-gain:'
gain() { evp-gain "$@" --model synthetic:tiny --gpu L4 --dram 1M --summary s.json >gain 2>said; echo "status $?, $(grep -c 'what can be read of the logs counts' said) warned of"; }
gain a b
gain a cut.gz b
gain a nowhere
gain nowhere
