# Ten rows of LongBench become eight contexts: one text has three rows, and two of these ask the same.
cp "$DATA/longbench/ten.jsonl" .
evp-import ten.jsonl
