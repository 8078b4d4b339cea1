"""quantised.py DIR - folders with quantised weights that contradict themselves, or config.json, each printed as a line: its
name and a path."""
import json, os, struct, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "golden", "packed"))
import packed

STEM = "model.layers.0.mlp.up_proj"
made = {}


def shape(end, *dims):
    def change(config, tensors):
        dtype, _, raw = tensors[STEM + end]
        n = 1
        for dim in dims:
            n *= dim
        size = {"F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I64": 8}.get(dtype, 1)
        tensors[STEM + end] = (dtype, list(dims), (raw * 2)[:n * size])
    return change


def put(end, at, raw):
    def change(config, tensors):
        dtype, dims, old = tensors[STEM + end]
        tensors[STEM + end] = (dtype, dims, old[:at] + raw + old[at + len(raw):])
    return change


def drop(end):
    return lambda config, tensors: tensors.pop(STEM + end)


def say(**fields):
    return lambda config, tensors: config["quantization_config"].update(fields)


def dtype(end, name):
    def change(config, tensors):
        tensors[STEM + end] = (name, *tensors[STEM + end][1:])
    return change


NAN = struct.pack("<f", float("nan"))
LIES = [
    ("fp8-block", drop(".weight_scale_inv")), ("fp8-block", shape(".weight_scale_inv", 3, 2)),
    ("fp8-block", say(weight_block_size=[64, 64])), ("fp8-block", say(weight_block_size=[0, 1])),
    ("fp8-block", put(".weight_scale_inv", 4, NAN)), ("fp8-block", put(".weight", 1000, b"\x7f")),
    ("fp8-block", say(fmt="e5m2")), ("fp8-block", say(quant_method="bitsandbytes")),
    ("fp8-block", say(quant_method="awq")), ("fp8-block", dtype(".weight_scale_inv", "I32")),
    ("fp8-block", lambda c, t: c.pop("quantization_config")),
    ("fp8-channel", shape(".weight_scale", 159, 1)),
    ("gptq", drop(".qzeros")), ("gptq", shape(".scales", 7, 160)), ("gptq", say(bits=3)), ("gptq", say(bits=8)),
    ("gptq", say(group_size=64)), ("gptq", say(group_size=-1)), ("gptq", shape(".qzeros", 6, 15)),
    ("gptq", shape(".qweight", 24, 159)), ("gptq", put(".g_idx", 8, struct.pack("<i", 6))),
    ("gptq", put(".g_idx", 8, struct.pack("<i", -2))), ("gptq", put(".bias", 8, b"\0\x3c")),
    ("gptq", say(checkpoint_format="marlin")),
    ("awq", say(version="gemv")), ("awq", say(bits=8)), ("awq", shape(".qweight", 191, 20)),
    ("int4", drop(".weight_shape")), ("int4", put(".weight_shape", 8, struct.pack("<q", 2**62))),
    ("int4", put(".weight_shape", 8, struct.pack("<q", 0))), ("int4", shape(".weight_scale", 160, 5)),
    ("int4", say(transform_config={"config_groups": {}})), ("int4-asymmetric", shape(".weight_zero_point", 19, 6)),
    ("nvfp4", drop(".weight_global_scale")), ("nvfp4", put(".weight_global_scale", 0, bytes(4))),
    ("nvfp4", shape(".weight_scale", 160, 11)), ("mxfp4", put(".weight_scale", 0, b"\xff")),
    ("mxfp4", shape(".weight_packed", 80, 192)),
]

for i, (name, lie) in enumerate(LIES):
    if name not in made:
        made[name] = packed.model(name)
    config, tensors = made[name][0] | {"quantization_config": dict(packed.LAYOUTS[name][0])}, dict(made[name][1])
    lie(config, tensors)
    path = os.path.join(sys.argv[1], str(i))
    packed.write(path, config, tensors)
    print(name, path)
