/* evp_metrics.c - the names of the metrics, each with its member of struct evp_counters; writing and reading them. */
#include "loader/libevicpress/evp_metrics.h"

#include "base/array.h"
#include "base/file.h"
#include "base/parse.h"
#include "codes/config_name.h"
#include "formats/tiers.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_FILE_MAX = 4 << 20, METRICS_LINE_MAX = 4096 };

static const double real_max = 1e60; // of a record: sums of them are finite

/* The labels of a metric, besides the process. */
enum labels { NO_LABEL, BY_CODE, BY_TIER, BY_CONFIG };

#define SUFFIX       ".prom"
#define MEMBER(name) offsetof(struct evp_counters, name)

static const struct family {
    const char *name, *help;
    size_t at; // of the member
    enum labels labels;
    enum { COUNT, REAL, GAUGE } kind; // REAL: a counter that is a double; others are uint64_t
} family[] = {
    { "evp_finds_total", "Calls of evp_find().", MEMBER(finds), NO_LABEL, COUNT },
    { "evp_asked_tokens_total", "Tokens of the prompts.", MEMBER(tokens_asked), NO_LABEL, COUNT },
    { "evp_hits_total", "Prefixes found.", MEMBER(hits), BY_CONFIG, COUNT },
    { "evp_hit_tokens_total", "Tokens of the prefixes found.", MEMBER(tokens_hit), BY_CONFIG, COUNT },
    { "evp_reads_total", "Reads of payloads.", MEMBER(reads), BY_TIER, COUNT },
    { "evp_read_bytes_total", "Bytes read.", MEMBER(read_bytes), BY_TIER, COUNT },
    { "evp_read_seconds_total", "Time of the reads.", MEMBER(read_s), BY_TIER, REAL },
    { "evp_read_square_bytes_total", "Sum of bytes * bytes of each read.", MEMBER(read_square_bytes), BY_TIER, REAL },
    { "evp_read_byte_seconds_total", "Sum of bytes * time of each read.", MEMBER(read_byte_s), BY_TIER, REAL },
    { "evp_puts_total", "Calls of evp_put() to the tier.", MEMBER(puts), BY_TIER, COUNT },
    { "evp_moves_total", "Calls of evp_move() to the tier.", MEMBER(moves), BY_TIER, COUNT },
    { "evp_evictions_total", "Payloads that left the tier: replaced, moved, removed.", MEMBER(evictions), BY_TIER,
      COUNT },
    { "evp_removes_total", "Calls of evp_remove().", MEMBER(removes), NO_LABEL, COUNT },
    { "evp_placed_contexts", "Contexts on the tier.", MEMBER(n_placed), BY_TIER, GAUGE },
    { "evp_placed_bytes", "Bytes of their payloads.", MEMBER(placed_bytes), BY_TIER, GAUGE },
    { "evp_errors_total", "Calls that failed.", MEMBER(errors), BY_CODE, COUNT },
};

enum { FAMILIES = sizeof(family) / sizeof(*family) };

const char *metrics_code(int number)
{
    static const char *const code[] = { NULL,       "memory",  "io",     "damaged", "gone", "small",
                                        "argument", "unknown", "exists", "full",    "busy" };

    return number > 0 && number < (int)(sizeof(code) / sizeof(*code)) ? code[number] : NULL;
}

/* Does the name of a file end in .prom, after something else? */
static bool is_metrics(const char *name)
{
    size_t n = strlen(name), end = strlen(SUFFIX);

    return n > end && strcmp(name + n - end, SUFFIX) == 0;
}

/* ---- records ------------------------------------------------------------------------ */

struct evp_counters *metrics_row(struct metrics *m, const char *tier, const char *config)
{
    char key[MEMBER(finds)]; // tier and config, with a NUL between them
    size_t n = strnlen(tier, sizeof(m->at->tier) - 1), n_config = strnlen(config, sizeof(m->at->config) - 1);
    bool added;

    memcpy(key, tier, n);
    key[n] = '\0';
    memcpy(key + n + 1, config, n_config);
    int i = ARRAY_GROW(m, m->n + 1) ? MAP_NOMEM : map_add(&m->map, key, n + 1 + n_config, &added);
    if (i < 0)
        return NULL;
    if (added) {
        m->at[i] = (struct evp_counters){ 0 };
        memcpy(m->at[i].tier, key, n);
        memcpy(m->at[i].config, key + n + 1, n_config);
        m->n++;
    }
    return &m->at[i];
}

/* The values of a member, one for each code or one. */
static int n_values(const struct family *f)
{
    return f->labels == BY_CODE ? (int)(sizeof(((struct evp_counters *)0)->errors) / sizeof(uint64_t)) : 1;
}

static uint64_t *count_of(struct evp_counters *row, const struct family *f, int i)
{
    return (uint64_t *)(void *)((char *)row + f->at) + i;
}

static double *real_of(struct evp_counters *row, const struct family *f)
{
    return (double *)(void *)((char *)row + f->at);
}

/* Adds a count; the sum stays within what metrics_parse() reads. */
static void add_count(uint64_t *to, uint64_t n)
{
    if (__builtin_add_overflow(*to, n, to) || *to > INT64_MAX)
        *to = INT64_MAX;
}

struct evp_counters metrics_total(const struct metrics *m, const char *tier, const char *config)
{
    struct evp_counters total = { 0 };

    memcpy(total.tier, tier, strnlen(tier, sizeof(total.tier) - 1));
    memcpy(total.config, config, strnlen(config, sizeof(total.config) - 1));
    for (int r = 0; r < m->n; r++) {
        struct evp_counters *row = &m->at[r];
        if ((*tier && strcmp(row->tier, total.tier) != 0) || (*config && strcmp(row->config, total.config) != 0))
            continue;
        for (const struct family *f = family; f < family + FAMILIES; f++)
            for (int i = 0; i < n_values(f); i++)
                if (f->kind == REAL)
                    *real_of(&total, f) += *real_of(row, f);
                else
                    add_count(count_of(&total, f, i), *count_of(row, f, i));
    }
    return total;
}

void metrics_release(struct metrics *m)
{
    map_release(&m->map);
    free(m->at);
    *m = (struct metrics){ 0 };
}

/* ---- writing ------------------------------------------------------------------------ */

/* A label with the first n bytes of a text. */
static void put_label(struct buf *out, const char *name, const char *text, size_t n)
{
    buf_printf(out, "%s=\"", name);
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n')
            buf_adds(out, "\\n");
        else if (text[i] == '\\' || text[i] == '"')
            buf_printf(out, "\\%c", text[i]);
        else
            buf_addc(out, text[i]);
    buf_addc(out, '"');
}

static void put_value(struct buf *out, const struct family *f, struct evp_counters *row, int i, const char *path)
{
    const char *code = f->labels == BY_CODE ? metrics_code(i) : NULL, *file = file_name(path);
    char text[TEXT_SHORT];

    if (f->labels == BY_CODE && !code)
        return;
    buf_adds(out, f->name);
    put_label(out, "{process", file, strlen(file) - (is_metrics(file) ? strlen(SUFFIX) : 0));
    if (code)
        put_label(out, ",code", code, strlen(code));
    if (f->labels >= BY_TIER)
        put_label(out, ",tier", row->tier, strlen(row->tier));
    if (f->labels == BY_CONFIG)
        put_label(out, ",config", row->config, strlen(row->config));
    if (f->kind == REAL)
        buf_printf(out, "} %s\n", text_real(text, *real_of(row, f)));
    else
        buf_printf(out, "} %llu\n", (unsigned long long)*count_of(row, f, i));
}

void metrics_write(const struct metrics *m, const char *path, struct buf *out)
{
    for (const struct family *f = family; f < family + FAMILIES; f++) {
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
                   f->kind == GAUGE ? "gauge" : "counter");
        for (int r = 0; r < m->n; r++) {
            bool by_config = *m->at[r].config, by_tier = *m->at[r].tier;
            if (by_config == (f->labels == BY_CONFIG) && by_tier == (f->labels >= BY_TIER))
                for (int i = 0; i < n_values(f); i++)
                    put_value(out, f, &m->at[r], i, path);
        }
    }
}

/* ---- reading ------------------------------------------------------------------------ */

/* Takes a label `name` at *at: its value, without escapes. NULL: another label, or none. */
static const char *take_label(char **at, const char *name)
{
    size_t n = strlen(name);

    if (strncmp(*at, name, n) != 0 || strncmp(*at + n, "=\"", 2) != 0)
        return NULL;
    char *value = *at + n + 2, *from = value, *to = value;
    for (; *from && *from != '"'; from++) {
        bool escaped = *from == '\\' && from[1];
        from += escaped;
        *to++ = escaped && *from == 'n' ? '\n' : *from;
    }
    if (!*from)
        return NULL;
    *to = '\0';
    *at = from + 1;
    return value;
}

/* The record that a line belongs to, by its labels at *at, and the number of its code in *i. */
static struct evp_counters *take_row(struct metrics *m, const struct family *f, char **at, int *i, struct err *err)
{
    const char *process = take_label(at, "{process"), *tier = "", *config = "", *code = "";
    struct evp_counters *row;
    struct tier t;

    *i = 0;
    if (f->labels == BY_CODE && (code = take_label(at, ",code")))
        for (*i = 1; metrics_code(*i) && strcmp(metrics_code(*i), code) != 0;)
            ++*i;
    if (f->labels >= BY_TIER)
        tier = take_label(at, ",tier");
    if (f->labels == BY_CONFIG)
        config = take_label(at, ",config");
    if (!process || !tier || !config || !code || strncmp(*at, "} ", 2) != 0 || (*i && !metrics_code(*i)) ||
        strlen(config) >= sizeof(row->config)) {
        err_set(err, ERR_FORMAT, "its labels are not those that libevicpress writes");
        return NULL;
    }
    *at += 2;
    if ((f->labels >= BY_TIER && tier_set_name(&t, tier, err)) ||
        (f->labels == BY_CONFIG && config_name_check(config, err)))
        return NULL;
    row = metrics_row(m, tier, "") ? metrics_row(m, tier, config) : NULL; /* a tier with hits has a record */
    if (!row)
        err_nomem(err);
    return row;
}

static int parse_line(struct metrics *m, char *line, struct err *err)
{
    const struct family *f = family;
    char *at = line + strcspn(line, "{ ");
    double x;
    int64_t n;
    int i;

    while (f < family + FAMILIES && (strncmp(line, f->name, strlen(f->name)) != 0 || line + strlen(f->name) != at))
        f++;
    if (f == family + FAMILIES)
        return 0;
    struct evp_counters *row = take_row(m, f, &at, &i, err);
    if (!row)
        return err_wrap(err, "'%s'", f->name);
    if (f->kind == REAL ? !parse_real(at, &x) || x < 0 : !parse_int(at, &n) || n < 0)
        return err_set(err, ERR_FORMAT, "'%s': '%.40s' is not a count", f->name, at);
    uint64_t *count = count_of(row, f, i);
    if (f->kind == REAL)
        *real_of(row, f) = fmin(*real_of(row, f) + x, real_max);
    else if (f->kind == COUNT)
        add_count(count, (uint64_t)n);
    else if (*count < (uint64_t)n)
        *count = (uint64_t)n;
    return 0;
}

int metrics_parse(struct metrics *m, char *text, struct err *err)
{
    char *end = text;

    for (int number = 1; *text; number++, text = end + 1) {
        end = strchr(text, '\n');
        if (!end || end - text > METRICS_LINE_MAX)
            return err_set(err, ERR_FORMAT, end ? "line %d is longer than %d bytes" : "line %d is cut", number,
                           METRICS_LINE_MAX);
        *end = '\0';
        if (parse_line(m, text, err))
            return err_wrap(err, "line %d", number);
    }
    return 0;
}

static int read_file(struct metrics *m, const char *path, struct err *err)
{
    struct buf text = { 0 };
    int code = file_read(&text, path, METRICS_FILE_MAX, err);

    if (!code && strlen(buf_str(&text)) != text.n)
        code = err_set(err, ERR_FORMAT, "'%s' has a NUL character", path);
    else if (!code && text.n && metrics_parse(m, text.at, err))
        code = err_wrap(err, "'%s'", path);
    buf_release(&text);
    return code;
}

static int is_entry(const struct dirent *entry)
{
    return is_metrics(entry->d_name);
}

static int read_folder(struct metrics *m, const char *path, struct err *err)
{
    struct dirent **entry;
    int n = scandir(path, &entry, is_entry, alphasort), code = 0;

    if (n < 0)
        return err_set(err, ERR_IO, "cannot open folder '%s': %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char *file = code ? NULL : file_join(path, entry[i]->d_name);
        if (!code)
            code = file ? read_file(m, file, err) : err_nomem(err);
        free(file);
        free(entry[i]);
    }
    free(entry);
    return code;
}

int metrics_read(struct metrics *m, const char *path, struct err *err)
{
    int code = file_is_dir(path) ? read_folder(m, path, err) : read_file(m, path, err);

    return !code && !m->n ? err_set(err, ERR_FORMAT, "'%s' has no metrics of libevicpress", path) : code;
}
