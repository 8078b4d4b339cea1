# Answers weighed by their questions' ages: as NumPy weighs them; of one age as without weights, bit for bit; old ones
# without weight, or left out, give the table of the new ones.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
ages() { /usr/bin/python3 "$TOP/tests/cli/score/ages.py" "$@"; }
score() { evp-score -q --embedder "$DATA/minibert" "$@"; }
# plan OLD NEW: a profile with the old questions asked at OLD (none: left out) and the new ones around NEW
plan() {
	printf 'config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\nconfig\tkivi:bits=2\t0.25\n'
	for c in a b; do
		printf 'context\t%s\n' $c
		for split in train train test; do
			[ "$1" = none ] || printf 'question\t%s\tthe 7 caches of %s\t8 caches\tit is paris in 2018\nasked\t%s\n' $split $c "$1"
			printf 'question\t%s\tin 2018 it was paris\tin 2018 it is\t%s\nasked\t%s\n' $split "not 7 caches" "$2"
			printf 'question\t%s\ta long context %s\ta cache\ta long context of 5\nasked\t%s\n' $split $c "$3"
			printf 'question\t%s\tthe answer is 42\tthe answer is 43\tthe answer is 42\n' $split
		done
	done
}
now=1750000000
day=86400
profile() { "$BUILD/tests/tools/make-profile" "$1" tiny; }
plan $((now - 50 * day)) $((now - day)) $now >mixed.txt
profile p.h5 <mixed.txt
for hours in 1h 36h 20d 1e6; do
	score p.h5 --question-half-life $hours -o t.h5
	ages means t.h5 $(echo $hours | sed 's/^1h/3600/; s/^36h/129600/; s/^20d/1728000/; s/^1e6/3.6e9/')
done
echo 'one age:'
sed "s/^asked.*/asked	$now/" mixed.txt | profile equal.h5
grep -v '^asked' mixed.txt | profile unknown.h5
for p in equal unknown; do
	score $p.h5 -o plain.h5
	score $p.h5 --question-half-life 1 --since 1 -o weighed.h5
	ages same plain.h5 weighed.h5
done
echo 'new ones alone:'
# Names of questions are numbers in make-profile: those of the mixed profile without the old ones
plan none $((now - day)) $now | profile new.h5
/usr/bin/python3 - <<'END_PYTHON'
import h5py
with h5py.File("p.h5") as mixed, h5py.File("new.h5", "a") as new:
    new["/questions/id"][:] = [i for i, at in zip(mixed["/questions/id"], mixed["/questions/asked_at"]) if not at < 1.748e9]
END_PYTHON
score new.h5 -o new-table.h5
score p.h5 --since 40d -o since.h5
ages same new-table.h5 since.h5
score new.h5 --question-half-life 5h -o new-table.h5
score p.h5 --since 960h --question-half-life 5h -o since.h5
ages same new-table.h5 since.h5
score p.h5 --question-half-life 5h -o weightless.h5 # 240 half-lives
ages same new-table.h5 weightless.h5 /quality /facts /token_f1 /predicted /belief /cells
echo 'all questions of a context are old:'
sed '/^context	b/,$ s/^asked.*/asked	1/; /^context	b/,$ { /answer is/d; }' mixed.txt | profile old.h5
for o in '--since 40d' '--question-half-life 5h'; do
	score old.h5 $o -o old-table.h5
	evp-plan -q old-table.h5 --tiers "$DATA/tiers.json" | grep -c '"id":"[ab]"'
	/usr/bin/python3 -c 'import h5py; t = h5py.File("old-table.h5"); print(t["/quality/train"][1], t["/quality/train_n"][1], (t["/predicted/quality"][1] > 0).all())'
done
for wrong in '--since -1' '--since soon' '--question-half-life nan' '--since nan'; do
	score p.h5 $wrong -o x.h5 2>&1 | head -1
done
