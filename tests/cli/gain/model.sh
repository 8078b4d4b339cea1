# The model without its weights: config.json and tokenizer.json are enough; without the tokenizer a token is four bytes,
# which is said; a damaged or strange config is refused.
for i in 1 2 3; do echo "{\"prompt\":\"The quick brown fox number $i\",\"time\":$((1700000000 + i))}"; done >log
gain() { evp-gain log --gpu L4 --dram 1M "$@" 2>&1 | grep 'model  \|text per\|tokenised\|kv per\|1000 tokens  \|bytes of text\|error\|warning' | sed "s|$PWD|.|g"; }
mkdir bare none
gain --model "$DATA/tiny" >whole
cat whole
cp "$DATA"/tiny/*.json bare
rm bare/model.safetensors.index.json
gain --model bare/config.json >shape
sed 's/ bare$/ tiny/' shape | cmp whole - && echo "no weights are read"
(cd bare && evp-gain ../log --gpu L4 -q --model config.json | grep -c '^  model  ')
rm bare/tokenizer.json
gain --model bare
gain --model none
echo '{"model_type":"llama"' >none/config.json
gain --model none/config.json
sed 's/"num_key_value_heads": 1/"num_key_value_heads": 7/' "$DATA/tiny/config.json" >none/config.json
gain --model none
gain --model "$DATA/tiny.gguf"
# Weights that a GPU cannot hold: 70 billion of 2 bytes on seven L4, or more; what seven leave is for KV.
echo '{"model_type":"llama","hidden_size":8192,"intermediate_size":28672,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":128256,"rms_norm_eps":1e-5,"tie_word_embeddings":false,"max_position_embeddings":8192,"hidden_act":"silu"}' >none/config.json
large() { evp-gain log --gpu L4 --model none --dram 1M "$@" 2>&1 | grep '^  gpus \|^  weights\|^  hbm\|fit'; }
large
large --gpus 6
large --gpus 14 --hbm 1G
