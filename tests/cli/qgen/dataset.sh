# The data set's own questions: as they are, in their order, each once, up to --per-context; a context without any is an error row.
cat >c.jsonl <<'END'
{"id":"a","text":"Some text.","inputs":[{"question":"Who?","answers":["I"]},{"question":"who ?","answers":[]},{"question":"Where?\n(A) here\n(B)  there","answers":[]},{"question":"When?","answers":[]},{"question":"Why not?","answers":[]}]}
{"id":"b","text":"Other text.","inputs":[]}
END
evp-qgen -q c.jsonl --from-dataset --per-context 3 | grep '"id"'
evp-qgen -q c.jsonl --from-dataset >/dev/null
