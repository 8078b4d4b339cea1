# Ten rows of LongBench become eight contexts: one text has three rows, of which two ask the same.
cp "$DATA/longbench/ten.jsonl" .
evp-import ten.jsonl
