# Every kind of archive gives what the plain file gives, from a file and through a pipe.
cp "$DATA/longbench/ten.jsonl" .
evp-import ten.jsonl 2>/dev/null | tail -n +2 >plain
python3 - <<'END'
import tarfile, zipfile
for kind, how in ("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(kind + ".zip", "w", how) as z:
        z.mkdir("data") if hasattr(z, "mkdir") else z.writestr("data/", "")
        z.write("ten.jsonl", "data/ten.jsonl")
        z.writestr("__MACOSX/data/._ten.jsonl", b"\0\0")
for kind in "", "gz", "bz2", "xz":
    with tarfile.open("t.tar" + kind, "w:" + kind) as t:
        t.add("ten.jsonl", "./data/ten.jsonl")
END
for archive in stored.zip deflated.zip t.tar t.targz t.tarbz2 t.tarxz; do
	evp-import -q $archive | tail -n +2 | cmp - plain && echo "$archive file"
	evp-import -q <$archive | tail -n +2 | cmp - plain && echo "$archive pipe"
done
