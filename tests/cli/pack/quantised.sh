# evp-show of quantised payloads: bits per number, and in each layer an error of the size that the format has.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
pack() { # CONFIG BYTES
	sed "s/keydiff:drop=0.5/$1/;s/\"bytes\": 944640/\"bytes\": $2/" "$DATA/pack/manifest.jsonl" >manifest.jsonl
	evp-pack -q --model "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" manifest.jsonl "$DATA/pack/contexts.jsonl" --shard 1/3 -o p
}
for config in none fp8 snapkv:drop=0.5:window=8+nvfp4 adakv+snapkv:drop=0.5:window=8+int4 turboquant:bits=3; do
	bytes=$(pack "$config" 1 2>&1 | sed -n 's/.*takes \([0-9]*\) bytes.*/\1/p')
	pack "$config" "$bytes" || exit
	echo "$config"
	evp-show --check p/fox.safetensors >/dev/null || exit
	evp-show p/fox.safetensors | awk '/bits.per.number/ { print } /error/ { on = 1; next } on && NF != 3 { on = 0 }
		on { n++; for (i = 2; i <= 3; i++) { sum[i] += $i; if ($i <= 0) print "no error in layer " $1 } }
		END { if (n) printf "%d layers, mean errors of keys and values %.2f %.2f\n", n, sum[2] / n, sum[3] / n }'
done
evp-show p/fox.safetensors | grep -A3 error | sed 's/[0-9]\.[0-9]*/N/g'
sed 's/\("errors":"\[\)0\./\1-1/' p/fox.safetensors >negative.safetensors
evp-show negative.safetensors 2>err
echo $?
sed "s/-[0-9.]* is/-N is/" err
