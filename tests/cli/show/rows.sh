# contexts and questions: a table of both, cut to --rows; all of it as JSON
printf '{"id":"a","text":"one two","dataset":"d"}\n{"id":"b","text":"three"}\n' >contexts.jsonl
printf '{"id":"a/0","context":"a","split":"train","text":"Which\\nline?","origin":"offline"}\n' >questions.jsonl
evp-show --rows 1 contexts.jsonl questions.jsonl
evp-show --json contexts.jsonl questions.jsonl
