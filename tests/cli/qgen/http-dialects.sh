# Services that lack a part of the API, in the words in which they were seen to refuse it: what comes out is what a service
# that has everything gives, and what is lacking is asked for only until it is known to be.
. "$TOP/tests/cli/qgen/mock"
ask ok | rows >want || exit 9
for s in openai-o1 openai-4o llama-cpp gemma vllm-old vllm-mute ollama plain-only; do
	ask $s --concurrency 1 >got || echo "$s ends with $?"
	rows got | cmp - want || echo "$s differs"
	echo "$s: $(grep "^/$s/" "$log" | cut -d' ' -f2,5 | uniq -c | sed 's/^ *//' | tr '\n' ';')"
	: >"$log"
done
ask ollama-thinks --retries 0 --concurrency 1
echo "ollama-thinks: $?"
ask ollama-thinks --reasoning-effort none | rows | cmp - want
ask openai-4o --reasoning-effort low --concurrency 1 2>&1 | grep -o '[^:]*reasoning_effort.*'
