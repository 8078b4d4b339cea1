# Documents that are not texts are refused with the command that makes a text of them; compressed texts are read.
. "$TOP/tests/cli/typed/said.inc"
python3 - <<'END'
import bz2, gzip, lzma, zipfile

def zipped(name, **members):
    with zipfile.ZipFile(name, "w") as z:
        for member, text in members.items():
            z.writestr(member, text)

office = {"[Content_Types].xml": "<x/>"}
zipped("letter.docx", **office, **{"word/document.xml": "<x/>"})
zipped("talk.pptx", **office, **{"ppt/presentation.xml": "<x/>"})
zipped("sums.xlsx", **office, **{"xl/workbook.xml": "<x/>"})
zipped("letter.odt", mimetype="application/vnd.oasis.opendocument.text", **{"content.xml": "<x/>"})
zipped("sums.ods", mimetype="application/vnd.oasis.opendocument.spreadsheet", **{"content.xml": "<x/>"})
zipped("book.epub", mimetype="application/epub+zip", **{"content.xml": "<x/>"})
zipped("texts.zip", **{"fox.txt": "The fox jumps."})
start = {
    "ascii.pdf": b"%PDF-1.3\n1 0 obj\nstream\nhello\nendstream\n", "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF", "scan.tif": b"II*\0\x08\0\0\0", "old.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0",
    "letter.rtf": b"{\\rtf1\\ansi Hello}", "rows.parquet": b"PAR1 and so on PAR1", "tool": b"\x7fELF\2\1\1\0",
    "GGUF.txt": b"GGUF is a format of models. BZh is one of archives, II of pictures, %PDF of documents.",
}
for name, data in start.items():
    open(name, "wb").write(data)
text = b"The fox jumps over the dog."
gzip.open("fox.txt.gz", "wb").write(text)
bz2.open("fox.md.bz2", "wb").write(text)
lzma.open("fox.xz", "wb").write(text)
gzip.open("rows.jsonl.gz", "wb").write(b'{"id":"a","text":"One."}\n{"id":"b","text":"Two."}\n')
gzip.open("letter.pdf.gz", "wb").write(start["ascii.pdf"])
open("cut.txt.gz", "wb").write(gzip.compress(text)[:-9])
END
for f in ascii.pdf letter.docx talk.pptx sums.xlsx letter.odt sums.ods book.epub picture.png photo.jpg scan.tif old.doc \
	letter.rtf rows.parquet tool letter.pdf.gz cut.txt.gz; do
	said evp-import $f
done
evp-import <letter.docx
echo "a pipe $?"
for f in texts.zip GGUF.txt fox.txt.gz fox.md.bz2 fox.xz rows.jsonl.gz; do
	echo "$f: $(evp-import -q $f | sed -n 's/^{"id":\("[^,]*\).*/\1/p' | tr '\n' ' ')"
done
mkdir folder && cp letter.docx ascii.pdf fox.txt.gz folder
evp-import -q folder 2>said | grep -c '"id"'
cat said
said evp-qgen ascii.pdf
said evp-show letter.docx
said evp-plan table.h5 --tiers ascii.pdf
