# Rows of other suites: kvpress', RULER's (of a file `validation`, named by its folder), SCBench's, LongBench v2's.
mkdir -p niah_single_1 vt
cat >niah_single_1/validation.jsonl <<'END'
{"index":3,"input":"A special magic number is hidden within the following text. What is the special magic pie?\nOne of the special magic numbers for red-fox is: 7123456.\nWhat is the special magic number for red-fox mentioned in the provided text?","outputs":["7123456"],"length":90,"answer_prefix":" The special magic number for red-fox mentioned in the provided text is"}
{"index":4,"input":"No question.","outputs":["1"]}
END
cat >vt/validation.jsonl <<'END'
{"input":"VAR A = 1\nQuestion: Find all variables that are assigned the value 1 in the text above.","outputs":["A","B"]}
END
cat >kvpress.jsonl <<'END'
{"context":"Some text.\n","question":"What are the words?","answer_prefix":" Answer:","answer":["a","b"],"task":"fwe","max_new_tokens":50}
{"_id":"x1","domain":"Law","difficulty":"easy","length":"short","choice_A":"p","choice_B":"q","choice_C":"r","choice_D":"s","question":"Which?\n(A) p\n(B) q","answer_prefix":"","answer":"A","context":"<text>\nT\n</text>\n"}
END
cat >data.jsonl <<'END'
{"_id":"y1","difficulty":"hard","choice_A":"p","choice_B":"q","choice_C":"r","choice_D":"s","question":"Which?","answer":"B","context":"T"}
END
cat >scbench_kv.jsonl <<'END'
{"id":0,"context":"{\"k\": \"v\", \"l\": \"w\"}","multi_turns":[{"input":"Key: \"k\"\nThe value is:","answer":"v"},{"input":"Key: \"l\"\nThe value is:","answer":"w"}]}
END
cat >scbench_choice_eng.jsonl <<'END'
{"context":"A book.","multi_turns":[{"input":"Who?","answer":"Bo","options":["Al","Bo","Cy","Di"]},{"input":"Who not?","answer":"Ed","options":["Al"]}]}
END
cat >scbench_mf.jsonl <<'END'
{"id":1,"context":[5,-2,31],"multi_turns":[{"input":"The largest number of the list is:","answer":31},{"input":"Which is the median?","answer":5}]}
END
cat >scbench_vt.jsonl <<'END'
{"input":"VAR X = 3","multi_turns":[{"input":"Who has 3?","answer":["X","Y"]}]}
END
evp-import niah_single_1 vt kvpress.jsonl data.jsonl scbench_*.jsonl 2>&1 | grep -v "\"evp\""
evp-import -q -d niah_single_1,scbench_kv . | grep -c '"text"' || true
