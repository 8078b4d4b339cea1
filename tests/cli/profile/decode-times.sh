# The time of a generated token is measured once for each variant, for all that have as many rows in every head together. It
# changes no answer. A list of cells measures none unless it is told to. Later runs keep the times, and add those that lack.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
printf '{"id":"%s","text":"The fox jumps over Reginald.","ask":" {question}"}\n' a b >c.jsonl
printf '{"id":"q%s","context":"%s","split":"%s","text":"Who?"}\n' 1 a train 2 a test 3 b train 4 b test >q.jsonl
cat >see.py <<'END'
import sys, h5py, numpy as np
def times(path):
    with h5py.File(path) as f:
        return np.array([f[f"/cells/decode_{b}_s"][:] for b in (1, 8, 32)]), {n: f[n][:].tolist() for n in ("/answers/text", "/cells/bytes")}
now, what = times(sys.argv[1])
print("timed:", *["".join("-+"[int((now[:, c, v] > 0).all())] for v in range(now.shape[2])) for c in range(now.shape[1])])
print("as none:", *["".join("-+"[int((now[:, c, v] == now[:, c, 0]).all())] for v in range(now.shape[2])) for c in range(now.shape[1])])
if len(sys.argv) > 2:
    (before, _), (_, without) = times(sys.argv[2]), times(sys.argv[3])
    print("earlier times kept:", (before == now).all(), "same answers and bytes as without:", what == without)
END
see() { /usr/bin/python3 see.py "$@"; }
profile() { evp-profile -q c.jsonl q.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 2 "$@"; }
all=knorm:drop=0.5,keydiff:drop=0.5,knorm:drop=0
profile -c $all --only train -o p.h5
see p.h5
cp p.h5 train.h5
profile -c $all -o p.h5
profile -c $all --decode-times off -o off.h5
see p.h5 train.h5 off.h5
echo "off, then on"
profile -c $all --only train --decode-times off -o o.h5
see o.h5
profile -c $all -o o.h5
see o.h5
echo "a list of cells"
printf '{"context":"a","configs":["none","knorm:drop=0.5"],"questions":["q1"]}\n' >cells.jsonl
profile --cells cells.jsonl -o cells.h5
see cells.h5
profile --cells cells.jsonl --decode-times on --overwrite -o cells.h5
see cells.h5
