/* An archive from anywhere, to contexts. What it may take: the limits of logs/archive.h hold whatever is inside. */
#include "logs/archive.h"
#include "base/file.h"
#include "datasets/import.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct sums {
    struct import im;
    uint64_t bytes;
    size_t packed;
};

static void drop_note(void *arg, enum import_note what, const char *sentence)
{
    (void)arg, (void)what, (void)sentence;
}

static bool wants(void *arg, const char *name)
{
    (void)arg;
    return name[0] != '.';
}

static int take(void *arg, const char *name, const char *bytes, size_t n, struct err *err)
{
    struct sums *s = arg;
    struct import_file file = { .label = "'f'", .name = name, .bytes = bytes, .n = n };

    s->bytes += n;
    if (s->bytes > ARCHIVE_ANY_RATIO && s->bytes / ARCHIVE_MAX_RATIO > s->packed)
        abort();
    return import_bytes(&s->im, &file, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sums s = { .im = { .note = drop_note }, .packed = n };
    struct archive_source source = { .label = "'f'", .bytes = data, .n = n };
    struct archive_visitor visitor = { .wants = wants, .file = take, .arg = &s };
    struct err err;

    if (archive_visit(&source, &visitor, &err) > 0 && s.im.contexts.n)
        abort(); /* no archive, no contexts */
    import_release(&s.im);
    return 0;
}
