/* model_digest.c - which model is this? SHA-256 over weights and tokenizer, read once and remembered.
 *
 * The note beside the model is text: the digest, then a line "SIZE MTIME_NS NAME" for each file it was made of. It is
 * valid while the same lines would be written again; otherwise the files are read again.
 */
#include "base/digest.h"
#include "engine/model_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NOTE_MAX = 1 << 20 };

struct sources {
    char *note;        // the path of the note
    const char **path; // (n): borrowed from the model, a folder's last one from `tokenizer`
    char *tokenizer;   // the folder's tokenizer.json
    int n;
};

static void sources_release(struct sources *s)
{
    free(s->note);
    free(s->path);
    free(s->tokenizer);
}

static int list_sources(struct sources *s, const struct model *m, struct err *err)
{
    struct buf note = { 0 };

    s->path = calloc((size_t)m->n_shards + 1, sizeof(*s->path));
    buf_printf(&note, m->json ? "%s/model.evp-digest" : "%s.evp-digest", m->path);
    s->note = buf_take(&note);
    if (!s->path || !s->note)
        return err_nomem(err);
    if (!m->json) {
        s->path[s->n++] = m->path;
        return 0;
    }
    for (int i = 0; i < m->n_shards; i++)
        s->path[s->n++] = m->shard_path[i];
    s->tokenizer = file_join(m->path, "tokenizer.json");
    if (!s->tokenizer)
        return err_nomem(err);
    if (file_exists(s->tokenizer))
        s->path[s->n++] = s->tokenizer;
    return 0;
}

/* Adds the lines that identify the files' present state. */
static int describe(struct buf *text, const struct sources *s, struct err *err)
{
    struct stat st;

    for (int i = 0; i < s->n; i++) {
        if (stat(s->path[i], &st))
            return err_set(err, ERR_IO, "cannot open '%s': %s", s->path[i], strerror(errno));
        buf_printf(text, "%lld %lld%09ld %s\n", (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                   file_name(s->path[i]));
    }
    return buf_failed(text) ? err_nomem(err) : 0;
}

/* Reads the digest from the note; false when the note is absent or describes another state. */
static bool remembered(const char *note, const struct buf *state, char hex[DIGEST_HEX])
{
    struct buf text = { 0 };
    struct err ignored;

    bool found = file_exists(note) && file_read(&text, note, NOTE_MAX, &ignored) == 0 &&
                 text.n == DIGEST_HEX + state->n && memcmp(text.at + DIGEST_HEX, state->at, state->n) == 0;
    if (found) {
        memcpy(hex, text.at, DIGEST_HEX);
        found = hex[DIGEST_HEX - 1] == '\n';
        hex[DIGEST_HEX - 1] = '\0';
        found = found && digest_is_hex(hex);
    }
    buf_release(&text);
    return found;
}

static int compute(const struct sources *s, char hex[DIGEST_HEX], struct err *err)
{
    struct digest *d = digest_new(err);

    for (int i = 0; d && i < s->n; i++) {
        struct file_map map;
        if (file_map(&map, s->path[i], err)) {
            digest_end(d, NULL);
            return err->code;
        }
        digest_add(d, map.at, map.n);
        file_unmap(&map);
    }
    if (!d)
        return err->code;
    digest_end(d, hex);
    return 0;
}

/* Writes the note. Where the folder cannot be written, the digest is computed again next time. */
static void remember(const char *note, const struct buf *state, const char hex[DIGEST_HEX])
{
    struct buf text = { 0 };
    struct err ignored;

    buf_printf(&text, "%s\n%s", hex, buf_str(state));
    if (!buf_failed(&text) && file_write(note, text.at, text.n, &ignored))
        ignored.code = 0;
    buf_release(&text);
}

int model_digest(const struct model *m, char hex[DIGEST_HEX], struct err *err)
{
    struct sources s = { 0 };
    struct buf state = { 0 };
    int code = list_sources(&s, m, err);

    if (code == 0)
        code = describe(&state, &s, err);
    if (code == 0 && !remembered(s.note, &state, hex)) {
        code = compute(&s, hex, err);
        if (code == 0)
            remember(s.note, &state, hex);
    }
    buf_release(&state);
    sources_release(&s);
    return code;
}
