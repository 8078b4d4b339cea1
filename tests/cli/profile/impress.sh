# impress keeps all bytes, and the table has how many of them are read: those of its rows, and the keys of the probe heads.
# load=1 reads all, and answers as the uncompressed cache. Tables are united with bytes read on one side alone.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
printf '{"id":"%s","text":"The fox jumps over Reginald, and the dog sees it from the %s.","ask":" {question}"}\n' a hill b wood >c.jsonl
printf '{"id":"q%s","context":"%s","split":"train","text":"%s?"}\n' 1 a Who 2 a Where 3 b Who >q.jsonl
profile() { evp-profile -q c.jsonl q.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 8 "$@"; }
profile -c impress:load=0.1:chunk=2,impress:load=0.2:chunk=2:reorder=yes,impress:load=1 -o p.h5
profile -c knorm:drop=0.5 -o other.h5
evp-score other.h5 p.h5 -q --embedder "$DATA/minibert" -o t.h5 2>said
/usr/bin/python3 - <<'END'
import h5py
L, G, K = 1, 1, 16
for path in "p.h5", "t.h5":
    with h5py.File(path) as f:
        names, T = [n.decode() for n in f["/configs/name"][:]], f["/contexts/n_tokens"][:]
        for v, name in enumerate(names):
            is_all = (f["/cells/bytes_read"][:, v] == -1).all()
            same = (f["/answers/text"][:, v] == f["/answers/text"][:, 0]).all()
            print(path, name, "reads all" if is_all else "reads a part", "answers as none" if same else "answers")
            if is_all:
                continue
            for c in range(len(T)):
                unread = round((1 - f["/cells/keep_frac"][c, v]) * L * T[c])  # tokens of all layers
                kept = L * G * (4 * K * T[c] + 4) + L * 4 * T[c] * ("reorder" in name)
                read = kept - unread * 2 * K * (2 * G - 1)
                assert f["/cells/bytes"][c, v] == kept and f["/cells/bytes_read"][c, v] == read < kept, (name, c)
END
