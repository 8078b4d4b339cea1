# standard input, from a pipe or a file, named or not
printf '{"id":"a","text":"one"}\n' >plain.jsonl
evp-show --check <plain.jsonl
cat plain.jsonl | evp-show --check -
cat "$DATA/tiny.gguf" | evp-show --check
cat "$DATA/table.h5" | evp-show --check -
cat plain.jsonl | evp-show
