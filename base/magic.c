/* magic.c - one table of magic numbers, and the members by which documents in a zip are told apart. The numbers are
 * those of the formats' specifications; where one could begin a text, the bytes after it are compared, too.
 */
#include "base/magic.h"

#include "base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOK_BYTES = 1 << 16, ZIP_NAME = 30 }; // ZIP_NAME: where the first member's name begins

#define TEXT_FROM "make a text of it: "
#define OFFICE    "soffice --headless --convert-to "

static const struct known {
    size_t at, n;
    const char *bytes;
    struct magic magic;
} known[] = {
    { 0, 8, "\x89HDF\r\n\x1a\n", { "is a table (HDF5)", NULL, false } },
    { 0, 16, "SQLite format 3", { "is an SQLite database, such as a tier's evp-state", NULL, false } },
    { 0, 14, "alpha\tquality\t", { "is a comparison of alphas", NULL, false } },
    { 0, 5, "%PDF-", { "is a PDF", TEXT_FROM "pdftotext IN.pdf OUT.txt", false } },
    { 0, 5, "{\\rtf", { "is an RTF document", TEXT_FROM "pandoc -t plain IN.rtf -o OUT.txt", false } },
    { 0,
      8,
      "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
      { "is an old Office document", TEXT_FROM OFFICE "txt:Text IN.doc", false } },
    { 0, 8, "\x89PNG\r\n\x1a\n", { "is a picture (PNG)", "tesseract IN.png OUT reads its words", false } },
    { 0, 3, "\xff\xd8\xff", { "is a picture (JPEG)", "tesseract IN.jpg OUT reads its words", false } },
    { 0, 6, "GIF87a", { "is a picture (GIF)", NULL, false } },
    { 0, 6, "GIF89a", { "is a picture (GIF)", NULL, false } },
    { 8, 7, "WEBPVP8", { "is a picture (WebP)", NULL, false } },
    { 0, 4, "II*\0", { "is a picture (TIFF)", "tesseract IN.tif OUT reads its words", false } },
    { 0, 4, "MM\0*", { "is a picture (TIFF)", "tesseract IN.tif OUT reads its words", false } },
    { 0, 2, "\x1f\x8b", { "is compressed with gzip", "unpack it: gunzip -k FILE", true } },
    { 4, 6, "1AY&SY", { "is compressed with bzip2", "unpack it: bunzip2 -k FILE", true } },
    { 0, 6, "\xfd\x37zXZ", { "is compressed with xz", "unpack it: unxz -k FILE", true } },
    { 0, 4, "\x28\xb5\x2f\xfd", { "is compressed with zstd", "unpack it: unzstd FILE", true } },
    { 0, 4, "\x04\x22\x4d\x18", { "is compressed with lz4", "unpack it: unlz4 FILE", true } },
    { 0, 6, "7z\xbc\xaf\x27\x1c", { "is a 7-Zip archive", "evp-import reads it", true } },
    { 257, 5, "ustar", { "is a tar archive", "evp-import reads it", true } },
    { 0, 4, "\177ELF", { "is a program or a library", NULL, false } },
};

/* A zip is one of these if the text is in it. */
static const struct member {
    const char *text;
    struct magic magic;
} members[] = {
    { "word/document.xml", { "is a Word document", TEXT_FROM "pandoc -t plain IN.docx -o OUT.txt", false } },
    { "ppt/presentation.xml", { "is a PowerPoint document", TEXT_FROM OFFICE "pdf IN.pptx, then pdftotext", false } },
    { "xl/workbook.xml", { "is an Excel document", "make a table of it: " OFFICE "csv IN.xlsx", false } },
    { "mimetypeapplication/vnd.oasis.opendocument.text",
      { "is an OpenDocument text", TEXT_FROM "pandoc -t plain IN.odt -o OUT.txt", false } },
    { "mimetypeapplication/vnd.oasis.opendocument",
      { "is an OpenDocument file", TEXT_FROM OFFICE "pdf IN, then pdftotext", false } },
    { "mimetypeapplication/epub+zip", { "is an EPUB", TEXT_FROM "pandoc -t plain IN.epub -o OUT.txt", false } },
};

static const struct magic zip = { "is a zip archive", "evp-import reads it", true };
static const struct magic parquet = { "is Parquet",
                                      "with pandas: pandas.read_parquet('IN').to_json('OUT.jsonl', orient='records', "
                                      "lines=True)",
                                      false };
static const struct magic gguf = { "is a model (GGUF)", NULL, false };
static const struct magic tensors = { "is a file of tensors", NULL, false };
static const struct magic payload = { "is a payload", NULL, false };

/* A zip's directory is at its end, the member that tells is often at its beginning. */
static bool has_text(const char *at, size_t n, const char *text)
{
    size_t look = n < LOOK_BYTES ? n : LOOK_BYTES, length = strlen(text);

    return memmem(at, look, text, length) || memmem(at + n - look, look, text, length);
}

static const struct magic *zip_of(const char *at, size_t n)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        if (has_text(at, n, members[i].text))
            return &members[i].magic;
    return &zip;
}

/* safetensors: the length of a JSON header as 8 bytes, then the header. */
static bool is_safetensors(const char *at, size_t n)
{
    uint64_t header;

    if (n < 10 || at[8] != '{')
        return false;
    memcpy(&header, at, sizeof(header));
    return header >= 2 && header <= n - 8;
}

const struct magic *magic_of(const void *bytes, size_t n)
{
    const char *at = bytes;

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (n >= known[i].at + known[i].n && memcmp(at + known[i].at, known[i].bytes, known[i].n) == 0)
            return &known[i].magic;
    if (n > ZIP_NAME && memcmp(at, "PK\3\4", 4) == 0)
        return zip_of(at, n);
    if (n > 8 && memcmp(at, "PAR1", 4) == 0 && memcmp(at + n - 4, "PAR1", 4) == 0)
        return &parquet;
    if (n >= 8 && memcmp(at, "GGUF", 4) == 0 && memcmp(at + 5, "\0\0", 3) == 0) // a version below 256
        return &gguf;
    if (is_safetensors(at, n))
        return has_text(at, n, "\"evp\":\"payload\"") ? &payload : &tensors;
    return NULL;
}

/* ---- our own files ------------------------------------------------------- */

static const struct {
    const char *evp, *what;
} kinds[] = {
    { "access", "an access log" },
    { "cells", "a list of answers to compute" },
    { "manifest", "a manifest" },
    { "receipt", "a load's receipt" },
    { "summary", "a summary of --summary" },
    { "answers", "answers of an API" },
    { "drift", "a state of evp-drift" },
};

const char *magic_kind(const char *evp)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(evp, kinds[i].evp) == 0)
            return kinds[i].what;
    return evp;
}

/* Reads the kind in {"evp":"kind", with which all our text files begin. */
static bool evp_kind(const struct magic_source *s, char name[32])
{
    char head[64];
    int end = 0, n = (int)(s->n < sizeof(head) - 1 ? s->n : sizeof(head) - 1);

    snprintf(head, sizeof(head), "%.*s", n, n ? (const char *)s->at : "");
    return sscanf(head, " { \"evp\" : \"%31[a-z]\"%n", name, &end) == 1 && end > 0;
}

int magic_refuse_bytes(struct err *err, const struct magic_source *s, const char *wanted)
{
    const struct magic *m = magic_of(s->at, s->n);
    char kind[32];

    if (err->code != ERR_FORMAT)
        return err->code;
    if (m && m->then)
        return err_set(err, ERR_FORMAT, "%s %s; %s", s->label, m->is, m->then);
    if (m && strstr(m->is, wanted) == NULL)
        return err_set(err, ERR_FORMAT, "%s %s, not %s", s->label, m->is, wanted);
    if (!m && evp_kind(s, kind) && strcmp(magic_kind(kind), wanted) != 0)
        return err_set(err, ERR_FORMAT, "%s holds %s, not %s", s->label, magic_kind(kind), wanted);
    return err->code;
}

int magic_refuse(struct err *err, const char *path, const char *wanted)
{
    struct buf label = { 0 };
    struct file_map map;
    struct stat st;
    struct err why;

    if (err->code != ERR_FORMAT || stat(path, &st) || !S_ISREG(st.st_mode))
        return err->code;
    if (file_map(&map, path, &why)) {
        *err = why.code == ERR_FORMAT ? why : *err;
        return err->code;
    }
    buf_printf(&label, "'%s'", path);
    if (!buf_failed(&label))
        magic_refuse_bytes(err, &(struct magic_source){ label.at, map.at, map.n }, wanted);
    buf_release(&label);
    file_unmap(&map);
    return err->code;
}
