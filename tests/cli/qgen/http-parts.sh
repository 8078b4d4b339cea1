# A context longer than the window is asked about part by part, its questions shared out over the parts.
. "$TOP/tests/cli/qgen/mock"
python3 - >c.jsonl <<'END'
import json
print(json.dumps({"id": "long", "text": " ".join(f"word{i}" for i in range(1000))}))
END
each=6 ask ok --window 1536 | grep -c '"id":"long/'
ask ok --window 1024 | grep -c '"id":"long/'
cut -d' ' -f2 "$log" | uniq -c | sed 's/^ *//'
