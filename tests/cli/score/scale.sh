# The scale is measured and printed beside every quality; held-out qualities have standard errors; too few questions to tell
# configs apart are said, enough are not.
configs='config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\nconfig\tkeydiff:drop=0.5\t0.5\nconfig\tkivi:bits=2\t0.2\n'
q() { printf 'question\t%s\t%s\t%s\t%s\t%s\n' "$@"; }
score() { "$BUILD/tests/tools/make-profile" p.h5 tiny && evp-score p.h5 --embedder "$DATA/minibert" --summary s.json -o t.h5 2>&1 | grep -v 'computing\|[0-9] answers, \|next:'; }
{
	printf "${configs}context\ta\n"
	q train "it is paris" "it is paris" "it is paris" "a cache"
	q test "a long context" "a cache" "it is paris" "it is"
	q test "it is rome" "it is rome" "a cache of paris" "a"
} | score
grep -o '"unrelated":0\.[0-9]\|"quality_test_error":0\.[0-9]' s.json
evp-show --json t.h5 | grep -o '"unrelated":0\.[0-9]'
echo
{
	printf "${configs}context\ta\n"
	for i in 1 2 3 4 5 6; do q test "it is $i" "it is $i" "a long cache $i" "a"; done
} | score | grep -c warning
echo
# Second answers of the uncompressed cache are the other end of the scale.
{
	printf "${configs}context\ta\n"
	q train "it is paris" "it is paris" "it is paris" "a cache"
	printf 'sampled\tit is rome\n'
	q test "a long context" "a cache" "it is paris" "it is"
	printf 'sampled\ta long context\n'
	q test "it is rome" "it is rome" "a cache of paris" "a"
} | score
grep -o '"same_meaning":0\.[0-9]' s.json
evp-show t.h5 | grep 'same meaning\|temperature'
echo
# One question: nothing is known of either.
{ printf "${configs}context\ta\n"; q test "it is" "it" "it is" "a"; } | score
