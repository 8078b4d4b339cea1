"""compare.py SCORE CASES - called by check and oracle: our scores of cases against those that are written in them."""
import json, subprocess, sys
from collections import Counter

cases = [json.loads(line) for line in open(sys.argv[2])]
run = subprocess.run([sys.argv[1]], input="".join(json.dumps(c) + "\n" for c in cases), capture_output=True, text=True)
ours = [float(x) for x in run.stdout.split()]
wrong = [(c, o) for c, o in zip(cases, ours) if not abs(c["score"] - o) < 1e-9]
for case, our in wrong[:5]:
    print(f"FAIL metric: {case['dataset']} {our}, not {case['score']}: {case['answer'][:80]!r} {case['gold'][0][:80]!r}")
if run.returncode or len(ours) != len(cases):
    sys.exit(f"FAIL metric: {len(ours)} of {len(cases)} scores: {run.stderr}")
if not wrong:
    n = Counter(c["dataset"].removesuffix("_e") for c in cases)
    print(f"ok metric: {len(cases)} answers of {len(n)} datasets, {sum(0 < c['score'] < 1 for c in cases)} between right and wrong")
sys.exit(bool(wrong))
