# --check: one line per file; cut, lying and foreign files are said to be so, and the worst status is the tool's
cp "$DATA/tiny.gguf" whole.gguf
cp -r "$DATA/tiny" folder && chmod -R u+w folder
head -c 24000 whole.gguf >cut.gguf
cp whole.gguf lying.gguf # the offset of the last tensor
at=$(grep -abo blk.0.ffn_down.weight lying.gguf | head -n 1 | cut -d : -f 1)
printf '\000\000\000\000\001' | dd of=lying.gguf bs=1 seek=$((at + 21 + 4 + 16 + 4)) conv=notrunc status=none
cp -r folder cut && truncate -s -1 cut/model-00002-of-00002.safetensors
cp -r folder missing && rm missing/model-00002-of-00002.safetensors
cp -r folder token && sed -i 's/"BPE"/"Unigram"/' token/tokenizer.json
printf '{"evp":"contexts","version":1}\n{"id":"a","text":"one"}\n' >cut.jsonl
printf '{"id":"a","text":"one"}\n' >plain.jsonl
head -c 9000 "$DATA/table.h5" >cut.h5
echo hello >other
: >empty
evp-show --check whole.gguf folder cut.gguf lying.gguf cut missing token cut.jsonl plain.jsonl cut.h5 other empty absent
