# A text with nothing to ask about is said and counted, the others go on; one with too little is warned about.
cat >c.jsonl <<'END'
{"id":"tiny","text":"Yes."}
{"id":"short","text":"The quick brown fox jumps over the lazy dog every single morning."}
END
evp-qgen -q c.jsonl --per-context 4 | grep -c '"context":"short"'
evp-qgen -q c.jsonl --per-context 4 >/dev/null
