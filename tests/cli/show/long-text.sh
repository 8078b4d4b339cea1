# A table of some kilobytes in which the length of a text is 4 GB is refused before it takes that memory.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
/usr/bin/python3 - "$DATA/table.h5" <<'END'
import resource, shutil, struct, subprocess, sys
import h5py

shutil.copy(sys.argv[1], "table.h5")
with h5py.File("table.h5", "r+") as f:
    texts = f["contexts/id"][:]
    del f["contexts/id"]
    at = f["contexts"].create_dataset("id", data=texts, dtype=h5py.string_dtype()).id.get_offset()
with open("table.h5", "r+b") as f:
    f.seek(at)
    f.write(struct.pack("<I", 0xf0000000))
done = subprocess.run(["evp-show", "table.h5"], capture_output=True, text=True)
print(done.returncode, done.stderr.count("\n"), "'table.h5': " in done.stderr)  # libhdf5 or a sanitizer says why
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print("small" if peak < 1500 else f"{peak} MiB")
END
