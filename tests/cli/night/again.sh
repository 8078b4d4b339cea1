# The chat template changes, then the weights: the night says so before it imports anything, takes what is placed from the tiers, and
# says how to begin anew. If the template comes back, the next night places everything again; --again sets the profile and the plan
# aside, and makes new ones.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
python3 - "$DATA/tiny.gguf" <<'END'
import sys
tiny = open(sys.argv[1], "rb").read()  # with room for the contexts
at = tiny.index(b"context_length") + len("context_length") + 4
open("model.gguf", "wb").write(tiny[:at] + (4096).to_bytes(4, "little") + tiny[at + 4:])
END
sed -i "s@synthetic:tiny@$PWD/model.gguf@; s/\"evp-plan\":\[[^]]*\],//" nightly.json
said() { grep -v '\$ \|: T\|evp-profile: \|warning' night.log | sed "s@$PWD@.@g" | tail -n 1; }
placed() { evp-show world/dram world/disk/ssd --json | grep -o '"context"' | wc -l; }
try() {
	begin_night
	evp-nightly --config nightly.json "$@" >night.log 2>&1
	echo "status $?"
}
try
evp-show --check world/manifest.jsonl $checked
echo "-- another chat template"
placed
cp chat usual
printf 'Someone: {content}\nAnswer:' >chat
try && said
placed
evp-show --check world/manifest.jsonl
evp-show --check world/profile.h5 --model model.gguf --chat-template chat
cp usual chat
try
placed
printf 'Someone: {content}\nAnswer:' >chat
try
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
