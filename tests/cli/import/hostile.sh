# Archives that no honest program writes are refused whole: status 3, nothing on standard output, the entry named.
python3 - <<'END'
import io, struct, tarfile, zipfile

row = b'{"context":"A document.","input":"Why?","_id":"1"}\n'

def zipped(name, *entries, how=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(name, "w", how) as z:
        z.writestr("good.jsonl", row)
        for entry, data in entries:
            z.writestr(entry, data)

zipped("slip.zip", ("../evil.jsonl", row))
zipped("deep.zip", ("a/b/../../../evil.jsonl", row))
zipped("back.zip", ("a\\..\\..\\evil.jsonl", row))
zipped("absolute.zip", ("/etc/evil.jsonl", row))
zipped("drive.zip", ("C:\\evil.jsonl", row))
zipped("bomb.zip", ("bomb.txt", b"a" * (40 << 20)))
zipped("many.zip", *((f"bomb{i}.txt", b"a" * (8 << 20)) for i in range(5)))

link = zipfile.ZipInfo("link.jsonl")
link.external_attr = 0o120777 << 16
zipped("link.zip", (link, b"/etc/passwd"))

# flags and sizes that the zipfile module would not write
def patched(name, source, local, central, value):
    b = bytearray(open(source, "rb").read())
    at = b.rindex(b"PK\x03\x04"), b.rindex(b"PK\x01\x02")
    for start, (offset, form) in zip(at, (local, central)):
        struct.pack_into(form, b, start + offset, value)
    open(name, "wb").write(b)

zipped("plain.zip", ("more.jsonl", row))
patched("encrypted.zip", "plain.zip", (6, "<H"), (8, "<H"), 1)
patched("declared.zip", "plain.zip", (22, "<I"), (24, "<I"), 3 << 30)
patched("longer.zip", "plain.zip", (22, "<I"), (24, "<I"), 10)
patched("checksum.zip", "plain.zip", (14, "<I"), (16, "<I"), 12345)
open("cut.zip", "wb").write(open("plain.zip", "rb").read()[:-30])
open("half.zip", "wb").write(open("plain.zip", "rb").read()[:120])
zipfile.ZipFile("empty.zip", "w").close()

def tarred(archive, **fields):
    with tarfile.open(archive, "w:gz") as t:
        info = tarfile.TarInfo("good.jsonl")
        info.size = len(row)
        t.addfile(info, io.BytesIO(row))
        info = tarfile.TarInfo(fields.pop("name", "evil.jsonl"))
        for key, value in fields.items():
            setattr(info, key, value)
        t.addfile(info, io.BytesIO(b"a" * info.size))

tarred("slip.tar.gz", name="data/../../evil")
tarred("absolute.tar.gz", name="/evil")
tarred("symlink.tar.gz", type=tarfile.SYMTYPE, linkname="/etc/passwd")
tarred("hardlink.tar.gz", type=tarfile.LNKTYPE, linkname="good.jsonl")
tarred("device.tar.gz", type=tarfile.CHRTYPE, devmajor=1, devminor=5)
tarred("pipe.tar.gz", type=tarfile.FIFOTYPE)
tarred("bomb.tar.gz", name="bomb.txt", size=40 << 20)
tarred("control.tar.gz", name="a\033[2J/../b")
b = open("slip.tar.gz", "rb").read()
open("cut.tar.gz", "wb").write(b[:len(b) // 2])
END
for archive in slip.zip deep.zip back.zip absolute.zip drive.zip link.zip bomb.zip many.zip encrypted.zip declared.zip \
	longer.zip checksum.zip cut.zip half.zip empty.zip slip.tar.gz absolute.tar.gz symlink.tar.gz hardlink.tar.gz \
	device.tar.gz pipe.tar.gz bomb.tar.gz control.tar.gz cut.tar.gz; do
	evp-import "$archive"
	echo "$archive $?"
done
[ -z "$(find . -name '*evil*')" ] || echo "something was unpacked"
