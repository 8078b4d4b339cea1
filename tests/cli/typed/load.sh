# evp-load without payloads says which tool makes them; an interrupted tool says that the same command goes on.
. "$TOP/tests/cli/typed/said.inc"
printf '{"evp":"tiers","version":1,"tiers":[{"name":"dram","kind":"file","uri":"%s/dram","capacity_bytes":1000000,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0}]}\n' "$PWD" >here.json
sed "s|/dev/shm/evp|$PWD/dram|" manifest.jsonl >m.jsonl
said evp-load m.jsonl -p none
evp-load m.jsonl 2>&1 | sed -n 1p
mkdir none
evp-load m.jsonl -p none 2>&1 | sed -n 1p
python3 - <<'END'
import json, signal, subprocess, time
text = " ".join(f"word{i * 7919 % 1000}" for i in range(20))
with open("many.jsonl", "w") as c, open("q.jsonl", "w") as q:
    for i in range(3000):
        c.write(json.dumps({"id": f"c{i}", "text": f"{i} {text}"}) + "\n")
        q.write(json.dumps({"id": f"q{i}", "context": f"c{i}", "split": "train", "text": "Who?"}) + "\n")
command = ["evp-profile", "many.jsonl", "q.jsonl", "--model", "model.gguf", "-c", "knorm:0.5", "--max-new-tokens", "1",
           "--backend", "reference", "-j", "1", "-o", "p.h5"]
p = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
for line in p.stderr:
    if "tokens, " in line or "memory:" in line:
        break
time.sleep(0.5)
p.send_signal(signal.SIGINT)
rest = p.stderr.read().splitlines()
print(p.wait() == -signal.SIGINT, rest[-1])
END
