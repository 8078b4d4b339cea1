"""load.py FOLDER TYPE - a tied Llama of 12 MB in BF16, F16 or F32, with the tokenizer of tests/data/tiny in FOLDER; prints the
bytes of its tensors. Numbers are small and finite: a random lower byte and a fixed upper one."""
import json, os, struct, sys

D, HEADS, KV_HEADS, HEAD, FF, LAYERS, VOCAB = 256, 4, 2, 64, 1024, 4, 8000
folder, dtype = sys.argv[1:]
config = json.load(open(f"{folder}/config.json"))
config.update(hidden_size=D, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD, intermediate_size=FF,
              num_hidden_layers=LAYERS, vocab_size=VOCAB, tie_word_embeddings=True)
json.dump(config, open(f"{folder}/config.json", "w"))
shapes = {"model.embed_tokens.weight": (VOCAB, D), "model.norm.weight": (D,)}
for i in range(LAYERS):
    name = f"model.layers.{i}."
    shapes |= {name + "input_layernorm.weight": (D,), name + "post_attention_layernorm.weight": (D,),
               name + "self_attn.q_proj.weight": (HEADS * HEAD, D), name + "self_attn.k_proj.weight": (KV_HEADS * HEAD, D),
               name + "self_attn.v_proj.weight": (KV_HEADS * HEAD, D), name + "self_attn.o_proj.weight": (D, HEADS * HEAD),
               name + "mlp.gate_proj.weight": (FF, D), name + "mlp.up_proj.weight": (FF, D),
               name + "mlp.down_proj.weight": (D, FF)}
header, at, parts = {}, 0, []
for name, shape in shapes.items():
    n = shape[0] * (shape[1] if len(shape) > 1 else 1)
    size = 4 if dtype == "F32" else 2
    numbers = bytearray(size * n)
    numbers[0::size], numbers[size - 1::size] = os.urandom(n), (b"\x20" if dtype == "F16" else b"\x3c") * n
    parts.append(numbers)
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size * n]}
    at += size * n
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)  # as the library of the format does, so that numbers are aligned
with open(f"{folder}/model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
print(at)
