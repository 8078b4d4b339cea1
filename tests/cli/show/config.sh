# The shape of a model from config.json alone: known, not known, hostile.
show() { echo "$1" >config.json; timeout 20 evp-show config.json 2>&1; echo "status $?"; }
mkdir gpt && cd gpt && show '{"model_type":"gpt_oss","num_hidden_layers":24,"hidden_size":2880,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"vocab_size":201088,"num_local_experts":32,"num_experts_per_tok":4,"sliding_window":128,"quantization_config":{"quant_method":"mxfp4"}}'
evp-show ../gpt | head -n 3
cd .. && mkdir fp8 && cd fp8 && show '{"model_type":"qwen3","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"intermediate_size":64,"vocab_size":100,"quantization_config":{"quant_method":"modelopt","quant_algo":"FP8","kv_cache_scheme":{"num_bits":8,"type":"float"}}}' | grep 'kv \|profiled'
cd .. && mkdir bad && cd bad
usual='"num_hidden_layers":4,"hidden_size":64,"num_attention_heads":4,"intermediate_size":8,"vocab_size":9'
show '{"model_type":"tomorrow",'"$usual"',"num_key_value_heads":2,"head_dim":16}' | grep 'sized\|kv per\|status'
show '{"model_type":"tomorrow","num_hidden_layers":4,"num_attention_heads":4}' | tail -n 2
show '{"model_type":"tomorrow",'"$usual"',"sliding_window":128}'
show '{"model_type":"tomorrow",'"$usual"',"mamba_d_state":128}'
show '{"model_type":"tomorrow",'"$usual"',"layer_types":["full_attention","astral","x","y"]}'
show '{"model_type":"tomorrow",'"$usual"',"layer_types":["full_attention"]}'
show '{"model_type":"bamba",'"$usual"',"attn_layer_indices":[1],"mamba_n_heads":0}'
show '{"model_type":"llama","num_hidden_layers":1e308,"hidden_size":64}'
show '{"model_type":"llama","num_hidden_layers":4096,"hidden_size":64}'
show '{"model_type":"llama","num_hidden_layers":4,"hidden_size":64,"num_attention_heads":-4}'
show '{"model_type":"llama",'"$usual"',"num_key_value_heads":9223372036854775808}'
show '{"model_type":"llama",'"$usual"',"num_key_value_heads":7}'
show '{"num_hidden_layers":4}'
show '[]'
show '{"text_config":{"text_config":{"text_config":{"model_type":"x"}}}}'
{ printf '{"model_type":"llama"'; seq -f ',"a%.0f":1' 5000; echo '}'; } >config.json; evp-show config.json 2>&1; echo "status $?"
