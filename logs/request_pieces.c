/* request_pieces.c - finds out whether a line is a piece, and of which stream. */
#include "logs/request_pieces.h"

#include "base/digest.h"

#include <string.h>

enum { PIECES_MAX = 256 << 20, LONG = 4096 }; // bytes of all pieces; of a text without an end that is a piece

/* Moves the pieces of stream i out of the list. */
static void move_out(struct request_pieces *p, int i)
{
    buf_release(&p->whole);
    p->whole = p->open[i].text;
    p->n_open--;
    memmove(&p->open[i], &p->open[i + 1], (size_t)(p->n_open - i) * sizeof(p->open[0]));
    p->open[p->n_open].text = (struct buf){ 0 };
}

const char *request_piece_left(struct request_pieces *p)
{
    if (p->n_open == 0)
        return NULL;
    move_out(p, 0);
    return buf_str(&p->whole);
}

/* Makes space for a piece of n bytes: the longest line goes, or the oldest. */
static bool make_space(struct request_pieces *p, size_t n, bool new)
{
    int longest = 0;

    for (int i = 0; i < p->n_open; i++) {
        n += p->open[i].text.n;
        longest = p->open[i].text.n > p->open[longest].text.n ? i : longest;
    }
    if (p->n_open == 0 || (n <= PIECES_MAX && !(new && p->n_open == PIECE_STREAMS)))
        return false;
    move_out(p, n > PIECES_MAX ? longest : 0);
    return true;
}

static int find(const struct request_pieces *p, uint64_t key)
{
    int i = 0;

    while (i < p->n_open && p->open[i].key != key)
        i++;
    return i;
}

static enum request_piece take(struct request_pieces *p, uint64_t key, bool last, const char **text)
{
    bool new = find(p, key) == p->n_open;

    if (new &&last)
        return PIECE_ALONE;
    bool lost = make_space(p, strlen(*text), new);
    int i = find(p, key);
    p->n_open += i == p->n_open;
    p->open[i].key = key;
    buf_adds(&p->open[i].text, *text);
    if (last && !lost)
        move_out(p, i);
    *text = buf_str(&p->whole);
    return lost ? PIECE_LOST : last ? PIECE_WHOLE : PIECE_KEPT;
}

/* "TIME stdout P rest" or F, perhaps with tags behind a colon; the rest, or NULL. */
static const char *cri_rest(const char *line, const char **stream)
{
    const char *at = line + strcspn(line, " ");

    if (*line < '0' || *line > '9' || (strncmp(at, " stdout ", 8) != 0 && strncmp(at, " stderr ", 8) != 0))
        return NULL;
    *stream = at + 1;
    at += 8;
    if ((*at != 'P' && *at != 'F') || (at[1] != ' ' && at[1] != ':' && at[1]))
        return NULL;
    at += strcspn(at, " ");
    return *at ? at + 1 : at;
}

enum request_piece request_piece_line(struct request_pieces *p, const char **text)
{
    const char *stream, *rest = cri_rest(*text, &stream);

    if (!rest)
        return PIECE_ALONE;
    uint64_t key = digest_xxh3(stream, strlen("stdout"));
    bool first = find(p, key) == p->n_open;
    *text = first ? *text : rest; /* the first one keeps its time */
    return take(p, key, stream[sizeof("stdout")] == 'F', text);
}

static bool says(const struct json *row, const char *name, const char *value)
{
    const struct json *v = json_get(row, name);

    return json_text(v) ? strcmp(json_text(v), value) == 0 : strcmp(value, "true") == 0 && json_true(v);
}

/* Is the text of a row without its end? */
static bool is_open(struct request_pieces *p, const struct json *row, const char *text)
{
    static const struct {
        const char *name, *open, *last;
    } marks[] = { { "logtag", "P", "" },
                  { "_LINE_BREAK", "line-max", "" },
                  { "CONTAINER_PARTIAL_MESSAGE", "true", "CONTAINER_PARTIAL_LAST" },
                  { "partial_message", "true", "partial_last" } };
    size_t n = strlen(text);

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (says(row, marks[i].name, marks[i].open))
            return !*marks[i].last || !says(row, marks[i].last, "true");
    bool docker = json_text(json_get(row, "log")) && json_text(json_get(row, "stream")) && !json_get(row, "logtag");
    bool ended = n == 0 || text[n - 1] == '\n';
    p->ends |= docker && ended;
    return docker && !ended && (p->ends || n >= LONG);
}

enum request_piece request_piece_row(struct request_pieces *p, const struct json *row, const char **text)
{
    static const char *const streams[] = { "stream",     "_STREAM_ID",          "_PID", "container_id", "CONTAINER_ID",
                                           "partial_id", "CONTAINER_PARTIAL_ID" };
    const struct json *pod = json_get(json_get(row, "kubernetes"), "pod_name");
    bool open = is_open(p, row, *text);
    uint64_t key = 0;

    for (size_t i = 0; (open || p->n_open) && i <= sizeof(streams) / sizeof(*streams); i++) {
        const char *name = json_text(i ? json_get(row, streams[i - 1]) : pod);
        key = name ? digest_xxh3_seeded(name, strlen(name), key) : key;
    }
    return open || p->n_open ? take(p, key, !open, text) : PIECE_ALONE;
}

void request_pieces_release(struct request_pieces *p)
{
    while (request_piece_left(p))
        ;
    buf_release(&p->whole);
    *p = (struct request_pieces){ 0 };
}
