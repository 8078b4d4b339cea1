# Payloads that were packed again with the same size are another payload: --verify places them, other loads leave what is there.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
python3 - pay/a1-* <<'END'
import json, struct, sys
path = sys.argv[1]
data = bytearray(open(path, "rb").read())
n, = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + n])
header["__metadata__"] = dict(reversed(header["__metadata__"].items()))
new = json.dumps(header, separators=(",", ":")).encode()
assert len(new) <= n
open(path, "wb").write(data[:8] + new.ljust(n) + data[8 + n:])
END
cmp -s "$(file dram a1 none)" pay/a1-*; echo "same: $?"
evp-load m.jsonl --payloads pay
cmp -s "$(file dram a1 none)" pay/a1-*; echo "same: $?"
evp-load -q m.jsonl --payloads pay --verify
cmp -s "$(file dram a1 none)" pay/a1-*; echo "same: $?"
evp-load m.jsonl --payloads pay --verify
evp-show --check dram ssd
