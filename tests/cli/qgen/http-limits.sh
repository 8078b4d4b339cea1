# Limits of the talk with a service: bytes of a reply, tries, contexts without a reply in a row, bytes of the key.
. "$TOP/tests/cli/qgen/mock"
for s in large largest vast; do
	ask $s -o $s.jsonl 2>/dev/null
	echo "$s: $?"
done
for tries in 1 2 3; do
	ask broken-twice --retries $tries >out 2>/dev/null
	echo "two failures, $tries retries: $?, $(grep -c '^/broken-twice.* 1 ' "$log") first tries"
	: >"$log"
	sed -i "s/which/which $tries/" c.jsonl # the service counts the requests with one text
done
for n in 2 3 4; do
	head -n $n c.jsonl >some.jsonl
	evp-qgen -q some.jsonl --api-base "$base/broken/v1" --model m --concurrency 1 --retries 0 2>&1 |
		grep -o 'the service.* contexts in a row\|the service gave.*'
done
base=http://127.0.0.1:1
for n in 65535 65536 65537; do
	head -c $n /dev/zero | tr '\0' k >key
	ask ok --retries 0 --key-file key 2>&1 | grep -o "'key'.*" || echo "a key of $n bytes is sent"
done
