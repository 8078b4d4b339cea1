/* request_counts.c - rows of Azure's and BurstGPT's traces, in CSV: how many tokens, and nothing of what. A model of
 * reuse gives each a context.
 */
#include "base/array.h"
#include "base/digest.h"
#include "base/parse.h"
#include "logs/request_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, CONTEXTS_MAX = 1000000 }; // tokens; of a model of reuse

int trace_reuse_parse(struct trace_reuse *r, const char *text, struct err *err)
{
    static const char before[] = "zipf:";
    char part[3][TEXT_SHORT] = { "", "", "0.5" };
    double s = -1, sum = 0;
    int64_t n = 0;

    *r = (struct trace_reuse){ 0 };
    const char *at = strncmp(text, before, strlen(before)) == 0 ? text + strlen(before) : "";
    for (int i = 0; i < 3 && *at; i++) {
        size_t length = strcspn(at, ",");
        snprintf(part[i], sizeof(part[i]), "%.*s", (int)(length < TEXT_SHORT ? length : 0), at);
        at += length + (at[length] == ',');
    }
    if (*at || !parse_real(part[0], &s) || !parse_count(part[1], &n) || !parse_real(part[2], &r->share) || !(s >= 0) ||
        !(s <= 100) || n < 1 || n > CONTEXTS_MAX || !(r->share > 0 && r->share <= 1))
        return err_set(err, ERR_USAGE,
                       "'%.40s' is not zipf:S,N[,SHARE]: the exponent, how many contexts, their share of a prompt",
                       text);
    r->until = malloc((size_t)n * sizeof(*r->until));
    if (!r->until)
        return err_nomem(err);
    r->n = (int)n;
    for (int i = 0; i < r->n; i++)
        r->until[i] = sum += pow(i + 1, -s);
    return 0;
}

void trace_reuse_release(struct trace_reuse *r)
{
    free(r->until);
    *r = (struct trace_reuse){ 0 };
}

/* The context of request i: a number from 0. */
static int draw(const struct trace_reuse *r, int64_t i)
{
    double share = (double)(digest_xxh3(&i, sizeof(i)) >> 11) * 0x1p-53 * r->until[r->n - 1];
    int low = 0, high = r->n - 1;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (r->until[middle] > share)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The column of a line, from 1; "": it has none. */
static const char *column_of(const char *line, int column)
{
    for (; column > 1 && *line; column--) {
        line += strcspn(line, ",");
        line += *line == ',';
    }
    return line;
}

static int find_column(const char *head, const char *a, const char *b)
{
    int column = 1;

    for (const char *at = head; *at; at = column_of(at, 2), column++) {
        size_t n = strcspn(at, ",");
        if ((n == strlen(a) && strncmp(at, a, n) == 0) || (n == strlen(b) && strncmp(at, b, n) == 0))
            return column;
    }
    return 0;
}

static int32_t count_at(const char *line, int column)
{
    const char *at = column ? column_of(line, column) : "";
    char text[TEXT_SHORT];
    int64_t n;

    snprintf(text, sizeof(text), "%.*s", (int)(strcspn(at, ",") < TEXT_SHORT ? strcspn(at, ",") : 0), at);
    return parse_count(text, &n) && n >= 0 && n <= TRACE_TOKENS_MAX ? (int32_t)n : -1;
}

static int give(const struct request_finding *f, const char *line, int32_t tokens, struct err *err)
{
    struct trace_reading *t = &f->l->trace;
    struct request *r = &f->l->request;
    char time[48];
    int64_t number = t->n_counts++, context = draw(t->reuse, number), n = (tokens + BLOCK - 1) / BLOCK;
    int32_t output = count_at(line, f->l->log.output_column);

    request_begin(r);
    for (int64_t i = 0; i < n; i++) {
        bool shared = (double)(i + 1) <= t->reuse->share * (double)n;
        const int64_t key[] = { shared, shared ? context : number, i };
        if (ARRAY_PUSH(&r->hash, digest_xxh3(key, sizeof(key))))
            return err_nomem(err);
    }
    snprintf(time, sizeof(time), "%.*s", (int)(strcspn(line, ",") < sizeof(time) ? strcspn(line, ",") : 0), line);
    r->time = request_time(time);
    r->block = BLOCK;
    r->n_tokens = tokens;
    r->n_output = output > 0 ? output : 0;
    return request_deliver(f, err);
}

int request_find_counts(const struct request_finding *f, const char *line, struct err *err)
{
    struct request_log *log = &f->l->log;

    if (strncmp(line, "TIMESTAMP,", 10) == 0 || strncmp(line, "Timestamp,", 10) == 0) {
        log->tokens_column = find_column(line, "ContextTokens", "Request tokens");
        log->output_column = find_column(line, "GeneratedTokens", "Response tokens");
        return log->tokens_column > 0;
    }
    int32_t tokens = log->tokens_column && isdigit((unsigned char)*line) ? count_at(line, log->tokens_column) : -1;
    if (tokens < 0)
        return 0;
    int code = 0;
    if (!f->l->hashes)
        code = request_flawed(f, REQUEST_HASHES);
    else if (!f->l->trace.reuse)
        code = request_flawed(f, REQUEST_COUNTS);
    else if (tokens > 0)
        code = give(f, line, tokens, err);
    return code ? code : 1;
}
