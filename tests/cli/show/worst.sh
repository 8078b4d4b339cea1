# what is wrong with one file does not hide the others
printf '{"id":"a","text":"one"}\n' >plain.jsonl
evp-show absent plain.jsonl
