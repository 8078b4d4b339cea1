# A pointer of Git LFS is named as one, wherever it stands in place of a file.
mkdir model folder
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea423c2713d436b5ee50593a9640e0018c1550b5a0002f74190d6caea8\nsize 12345\n' >pointer
for name in model/config.json model/model.safetensors x.gguf data.zip log trace.jsonl table.h5 tiers.json; do cp pointer $name; done
cp "$DATA/tiny/config.json" model/
try() { timeout 20 "$@" 2>&1 | grep LFS; }
try evp-show x.gguf
try evp-show model
try evp-gain log --model x.gguf --gpu L4
try evp-gain log --model synthetic:tiny --gpu L4
try evp-import data.zip -o out
try evp-import log -o out
try evp-import --requests log -o out
try evp-replay table.h5 --tiers "$DATA/tiers.json" --trace poisson:1,5 --contexts zipf:1 --policy lru
try evp-replay "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace trace.jsonl --contexts zipf:1 --policy lru
try evp-replay "$DATA/table.h5" --tiers tiers.json --trace poisson:1,5 --contexts zipf:1 --policy lru
