# Tokens per second of decoding, relative to the uncompressed cache: the mean over contexts; one column, with -v three. Of a
# profile without such times nothing is said.
plan() {
	printf 'config\tnone\t1%b\nconfig\tknorm:drop=0.5\t0.5%b\nconfig\tkivi:bits=4\t0.3\n' "$1" "$2"
	printf 'context\t%s\nquestion\ttrain\tit is paris\tit is paris\tit is paris\n' "$3"
}
score() { evp-score "$@" --embedder "$DATA/minibert" -o t.h5 2>&1 | grep 'tok/s\|none\|knorm:\|kivi:'; }
plan '\t0.04\t0.01\t0.008' '\t0.032\t0.005\t0.002' a | "$BUILD/tests/tools/make-profile" a.h5 tiny
plan '\t0.04\t0.01\t0.008' '\t0.04\t0.01\t0.004' b | "$BUILD/tests/tools/make-profile" b.h5 tiny
plan '' '' c | "$BUILD/tests/tools/make-profile" c.h5 tiny
echo "three contexts, one without times"
score a.h5 b.h5 c.h5 --summary s.json
grep -o '"speed_[^}]*' s.json
evp-report -q t.h5 | grep -o '<th scope="col"[^>]*>tokens/s[^/]*\|Tokens/s[^.]*\|<th scope="row">knorm.*'
echo "at every batch"
score -v a.h5
echo "without times"
score c.h5
echo "another prefill rate"
evp-score -q a.h5 --prefill-tokens-per-s 1000 --embedder "$DATA/minibert" -o t.h5 --summary s.json
grep -o '"speed_32":[^,}]*' s.json | sort -u
