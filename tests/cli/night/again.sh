# The chat template changes, then the weights: the night says so and how to begin anew, and what is in force stays; --again takes
# what is placed from the tiers, sets the profile and the plan aside, and makes new ones.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
python3 - "$DATA/tiny.gguf" <<'END'
import sys
tiny = open(sys.argv[1], "rb").read()  # with room for the contexts
at = tiny.index(b"context_length") + len("context_length") + 4
open("model.gguf", "wb").write(tiny[:at] + (4096).to_bytes(4, "little") + tiny[at + 4:])
END
sed -i "s@synthetic:tiny@$PWD/model.gguf@" nightly.json
said() { grep -v '\$ \|: T\|evp-profile: \|warning' night.log | sed "s@$PWD@.@g" | tail -n 3; }
try() {
	begin_night
	evp-nightly --config nightly.json "$@" >night.log 2>&1
	echo "status $?"
}
try
evp-show --check world/manifest.jsonl $checked
echo "-- another chat template"
printf 'Someone: {content}\nAnswer:' >chat
try && said
evp-show --check world/manifest.jsonl
try --again
evp-show --check world/manifest.jsonl $checked
ls world | grep old
echo "-- other weights"
printf '\001' | dd of=model.gguf bs=1 seek=$(($(stat -c %s model.gguf) - 3)) conv=notrunc status=none
try && said
try --again
evp-show --check world/manifest.jsonl $checked
python3 - <<'END'
import json
digests = {json.loads(open(f"world/manifest.jsonl{s}").readline())["model_digest"] for s in ("", ".old")}
print(len(digests), "models")
END
