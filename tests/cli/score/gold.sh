# Right answers that came with a dataset go into the profile, and its own metric scores every variant; a dataset without a
# metric has no score. From contexts to evp-show.
cat >c.jsonl <<'END'
{"id":"a","dataset":"hotpotqa","text":"The fox jumps over Reginald.","ask":" {question}","inputs":[{"question":"Who\n jumps?","answers":["the fox","Fox"]},{"question":"Why?","answers":[]}]}
{"id":"b","dataset":"mine","text":"The dog sleeps on Monday.","ask":" {question}","inputs":[{"question":"Who sleeps?","answers":["the dog"]}]}
END
evp-qgen -q c.jsonl --from-dataset -o q.jsonl
evp-profile -q c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs knorm:drop=0.5 --max-new-tokens 4 -o p.h5
evp-score p.h5 --embedder "$DATA/minibert" -o t.h5 2>&1 | grep 'gold'
evp-show --json t.h5 | grep -o '"gold":[^,]*'
# The scores themselves, of answers that are known.
{
	printf 'config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\n'
	printf 'context\tc\tqasper_e\nquestion\ttrain\tthe red fox\ta dog\ngold\t["A fox!","nothing"]\n'
	printf 'context\td\tgov_report\nquestion\ttest\ta b c d\ta b\ngold\t["a b c d"]\nquestion\ttest\tx\ty\n'
} | "$BUILD/tests/tools/make-profile" known.h5 tiny
evp-score known.h5 --embedder "$DATA/minibert" -o t.h5 2>&1 | grep 'gold\|none\|knorm'
evp-report -q t.h5 | grep -o 'Gold is[^.]*\|<th scope="row">knorm.*'
