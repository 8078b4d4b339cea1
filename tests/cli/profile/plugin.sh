# A method of one's own, from the example in C: profiled, packed, checked and shown; wrong ones get a sentence.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
build() { cc -shared -fPIC -O2 -Wall -Wextra -Werror -I "$TOP/methods" "$@" -lm || exit; }
build "$TOP/examples/value_norm.c" -o libvalue_norm.so
printf '{"id":"a","text":"The quick brown fox jumps over the lazy dog.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n' >q.jsonl
profile() { evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 2 -q "$@"; }
{
profile -o p.h5 --plugin ./libvalue_norm.so --configs value_norm:drop=0.5,adakv+value_norm:0.3:sink=1
evp-show --json p.h5 | grep -o '"config":"[^"]*"'
evp-show --methods --plugin ./libvalue_norm.so | grep '^  value_norm'
profile -o p2.h5 --configs value_norm:drop=0.5 || echo "status $?"
profile -o p2.h5 --plugin ./libvalue_norm.so --configs value_norm:drop=0.5:sink=1025 || echo "status $?"

sed 's/keydiff:drop=0.5/value_norm:drop=0.5/' "$DATA/pack/manifest.jsonl" >manifest.jsonl
pack() { evp-pack -q manifest.jsonl "$DATA/pack/contexts.jsonl" --shard 1/3 -o p "$@"; }
pack || echo "status $?"
pack --plugin ./libvalue_norm.so && evp-show --check p/*.safetensors --plugin ./libvalue_norm.so
evp-show --check p/*.safetensors

cat >bad.c <<'END'
#include <evp_method.h>
#include <math.h>
#include <stdio.h>
static int score(const struct evp_head *head, const double *value, float *score, char why[EVP_METHOD_WHY])
{
	for (int t = 0; t < head->n_tokens - LEFT; t++)
		score[t] = t == 3 ? SCORE : (float)value[0];
	snprintf(why, EVP_METHOD_WHY, "no luck");
	return CODE;
}
static int32_t keep(const double *value, int32_t n_tokens, int32_t layer, int32_t n_layers)
{
	return (void)value, (void)layer, (void)n_layers, (void)n_tokens, KEEP;
}
extern const struct evp_method evp_method;
const struct evp_method evp_method = { .abi = ABI, .size = sizeof(struct evp_method), .name = NAME, .score = score, .keep = keep };
END
bad() {
	build -DNAME='"mine"' -DABI=EVP_METHOD_ABI -DCODE=0 -DSCORE=1 -DLEFT=0 -DKEEP=n_tokens "$@" bad.c -o bad.so
	profile -o p3.h5 --overwrite --plugin ./bad.so --configs mine:drop=0.5 || echo "status $?"
}
bad
bad -USCORE -DSCORE=NAN
bad -ULEFT -DLEFT=1
bad -UCODE -DCODE=7
bad -UKEEP -DKEEP=0
bad -UKEEP -DKEEP=n_tokens+1
bad -UABI -DABI=2
bad -UNAME -DNAME='"knorm"'
bad -UNAME -DNAME='"My method"'
profile -o p3.h5 --plugin libvalue_norm.so --configs mine:drop=0.5 || echo "status $?"
profile -o p3.h5 --plugin ./q.jsonl --configs mine:drop=0.5 || echo "status $?"
build -x c - -o empty.so <<'END'
int nothing;
END
profile -o p3.h5 --plugin ./empty.so --configs mine:drop=0.5 || echo "status $?"
} 2>&1 | sed 's/; there are none.*//; s/  */ /g'
