/* trace.c - one reader for rows of JSON, one for CSV, whose first field is a time. */
#include "replay/trace.h"

#include "base/array.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/rng.h"
#include "logs/access.h"
#include "logs/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ns_per_s = 1e9, span_max_s = 1e9; // thirty years
enum { REQUESTS_MAX = 100000000, COUNT_MAX = 100000, OUTPUT_MAX = 1 << 30 };

/* A request as it was read. */
struct read_request {
    double second; // NAN: it has no time
    int32_t context, number, output;
};

struct reading {
    struct map *contexts;
    struct {
        struct read_request *at;
        int n, cap;
    } request;
    int output_column;        // of a CSV, from 0; -1: it has none
    struct trace_facts facts; // of Mooncake's rows
};

static int add(struct reading *r, double second, int32_t context, double output, struct err *err)
{
    const struct read_request q = { second, context, r->request.n, (int32_t)output };

    if (r->request.n == REQUESTS_MAX)
        return err_set(err, ERR_FORMAT, "more than %d requests", REQUESTS_MAX);
    if (!(output >= 0 && output <= OUTPUT_MAX && output == floor(output)))
        return err_set(err, ERR_FORMAT, "%g is not the number of tokens of an answer", output);
    return ARRAY_PUSH(&r->request, q) ? err_nomem(err) : 0;
}

/* ---- rows ----------------------------------------------------------------------- */

/* A row of an access log. */
static int add_access(struct reading *r, const struct json *row, struct err *err)
{
    const char *context;
    double count, second = (double)NAN;

    if (access_count(row, &context, &count, err) || json_may_real(row, "at", &second, err))
        return err->code;
    if (count != floor(count) || count > COUNT_MAX)
        return err_set(err, ERR_FORMAT, "field 'count' is %g, not a whole number of at most %d requests", count,
                       COUNT_MAX);
    int32_t at = map_add(r->contexts, context, strlen(context), NULL);
    if (at == MAP_NOMEM)
        return err_nomem(err);
    int code = 0;
    for (double i = 0; i < count && !code; i++)
        code = add(r, second, at, 0, err);
    return code;
}

static int add_row(void *arg, const struct json *row, struct err *err)
{
    struct reading *r = arg;
    double time, input = 0, output = 0;

    if (!json_get(row, "timestamp"))
        return add_access(arg, row, err);
    if (json_want_real(row, "timestamp", &time, err) || json_may_real(row, "input_length", &input, err) ||
        json_may_real(row, "output_length", &output, err))
        return err->code;
    trace_facts_time(&r->facts, time, input);
    return add(r, time, -1, output, err);
}

/* Brings the times of Mooncake's rows from `from` on into seconds. */
static void take_unit(struct trace *t, struct reading *r, int from)
{
    if (r->facts.n == 0)
        return;
    t->unit = trace_facts_unit(&r->facts);
    for (int i = from; i < r->request.n; i++)
        r->request.at[i].second *= t->unit;
    r->facts = (struct trace_facts){ 0 };
}

/* ---- CSV ------------------------------------------------------------------------- */

/* The column of a line, from 0; NULL: it has none. */
static char *column_of(char *line, int column)
{
    for (; line && column > 0; column--) {
        char *comma = strchr(line, ',');
        line = comma ? comma + 1 : NULL;
    }
    return line;
}

/* The column whose name is that of answers' tokens; -1: none. */
static int find_output(char *head)
{
    static const char *const name[] = { "GeneratedTokens", "Response tokens" };
    int column = 0;

    for (char *at = head; at; at = column_of(at, 1), column++)
        for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
            if (strcspn(at, ",\r\n") == strlen(name[i]) && strncmp(at, name[i], strlen(name[i])) == 0)
                return column;
    return -1;
}

static int add_line(struct reading *r, char *line, struct err *err)
{
    char *tokens = r->output_column > 0 ? column_of(line, r->output_column) : NULL;
    double second, output = 0;

    if (tokens) {
        tokens[strcspn(tokens, ",\r")] = '\0';
        if (!parse_real(tokens, &output))
            return err_set(err, ERR_FORMAT, "'%.40s' is not the number of tokens of an answer", tokens);
    }
    line[strcspn(line, ",")] = '\0';
    if (!parse_real(line, &second))
        second = request_time(line);
    return isnan(second) ? err_set(err, ERR_FORMAT, "'%.40s' is not a time", line) : add(r, second, -1, output, err);
}

/* Is the first line the head of a CSV with times? */
static bool is_csv(const char *text)
{
    return strncmp(text, "TIMESTAMP,", 10) == 0 || strncmp(text, "Timestamp,", 10) == 0;
}

static int read_csv(struct reading *r, char *text, struct err *err)
{
    char *line = text + strcspn(text, "\n");
    bool more = *line;

    *line = '\0';
    r->output_column = find_output(text);
    *line = more ? '\n' : '\0';
    for (int n_line = 2; *line; n_line++) {
        char *begin = line + 1; /* line is at the end of the one before */
        line = begin + strcspn(begin, "\n");
        char end = *line;
        *line = '\0';
        if (*begin && strcmp(begin, "\r") != 0 && add_line(r, begin, err))
            return err_wrap(err, "line %d", n_line);
        *line = end;
    }
    return 0;
}

/* ---- libCacheSim ------------------------------------------------------------------ */

enum { RECORD = 24, OBJECT_AT = 4 };

static bool is_records(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && (strcmp(dot, ".oracleGeneral") == 0 || strcmp(dot, ".bin") == 0);
}

static int read_records(struct reading *r, const struct buf *bytes, struct err *err)
{
    if (bytes->n % RECORD != 0)
        return err_set(err, ERR_FORMAT, "%zu bytes are not records of %d", bytes->n, RECORD);
    for (size_t at = 0; at < bytes->n; at += RECORD) {
        uint32_t second;
        uint64_t object;
        char name[24];
        memcpy(&second, bytes->at + at, sizeof(second));
        memcpy(&object, bytes->at + at + OBJECT_AT, sizeof(object));
        snprintf(name, sizeof(name), "%llu", (unsigned long long)object);
        int32_t context = map_add(r->contexts, name, strlen(name), NULL);
        if (context == MAP_NOMEM)
            return err_nomem(err);
        if (add(r, second, context, 0, err))
            return err->code;
    }
    return 0;
}

/* ---- the order -------------------------------------------------------------------- */

static int by_arrival(const void *a, const void *b)
{
    const struct trace_request *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* Takes the requests over, with times from the first on. */
static int finish(struct trace *t, const struct reading *r, struct err *err)
{
    const struct read_request *q = r->request.at;
    int n = r->request.n;
    double first = (double)INFINITY, last = -(double)INFINITY;

    t->timed = !isnan(q[0].second);
    for (int i = 0; i < n; i++) {
        if (isnan(q[i].second) == t->timed)
            return err_set(err, ERR_FORMAT, "request %d has %s time, the first one has %s", i + 1,
                           t->timed ? "no" : "a", t->timed ? "one" : "none");
        first = fmin(first, q[i].second);
        last = fmax(last, q[i].second);
    }
    if (t->timed && !(last - first <= span_max_s))
        return err_set(err, ERR_FORMAT, "from the first request to the last it is more than thirty years");
    t->request = malloc((size_t)n * sizeof(*t->request));
    if (!t->request)
        return err_nomem(err);
    for (int i = 0; i < n; i++) {
        int64_t at = t->timed ? (int64_t)llround((q[i].second - first) * ns_per_s) : 0;
        t->request[i] = (struct trace_request){ at, q[i].context, q[i].number, q[i].output };
    }
    t->n = n;
    qsort(t->request, (size_t)n, sizeof(*t->request), by_arrival);
    return 0;
}

/* ---- kinds ------------------------------------------------------------------------ */

/* "poisson:QPS,N" without its first word. */
static int make_poisson(struct reading *r, const char *text, uint64_t seed, struct err *err)
{
    struct rng rng = rng_named(seed, "arrivals");
    const char *comma = strchr(text, ',');
    char rate_text[32] = "";
    double rate = 0, second = 0;
    int64_t n = 0;

    if (comma && (size_t)(comma - text) < sizeof(rate_text))
        memcpy(rate_text, text, (size_t)(comma - text));
    if (!comma || !parse_real(rate_text, &rate) || !parse_count(comma + 1, &n) || !(rate > 0) || n < 1 ||
        n > REQUESTS_MAX)
        return err_set(err, ERR_USAGE, "'poisson:%s' is not poisson:QPS,N: requests per second, and how many", text);
    for (int64_t i = 0; i < n; i++) {
        if (add(r, second, -1, 0, err))
            return err->code;
        second -= log(1 - rng_unit(&rng)) / rate;
    }
    return 0;
}

static int read_file(struct reading *r, const char *path, struct err *err)
{
    char head[11] = "";
    FILE *f = fopen(path, "re");

    if (f) {
        head[fread(head, 1, sizeof(head) - 1, f)] = '\0';
        fclose(f);
    }
    if (!is_csv(head) && !is_records(path))
        return access_each(path, add_row, r, err);
    struct buf text = { 0 };
    int code = file_read(&text, path, SIZE_MAX / 4, err);
    if (!code && (is_csv(head) ? read_csv(r, text.at, err) : read_records(r, &text, err)))
        code = err_wrap(err, "'%s'", path);
    buf_release(&text);
    return code;
}

static int read_one(struct trace *t, struct reading *r, const char *path, uint64_t seed, struct err *err)
{
    static const char poisson[] = "poisson:";
    int before = r->request.n;

    if (strncmp(path, poisson, sizeof(poisson) - 1) == 0)
        return make_poisson(r, path + sizeof(poisson) - 1, seed, err);
    int code = read_file(r, path, err);
    if (!code && r->request.n == before)
        return err_set(err, ERR_FORMAT, "'%s': no requests", path);
    take_unit(t, r, before);
    return code;
}

int trace_read(struct trace *t, char *const *path, int n, uint64_t seed, struct err *err)
{
    struct reading r = { .contexts = &t->contexts };
    int code = 0;

    *t = (struct trace){ 0 };
    for (int i = 0; i < n && !code; i++)
        code = read_one(t, &r, path[i], seed, err);
    if (!code && (finish(t, &r, err) || trace_spread(t, err)))
        code = err_wrap(err, "'%s'", path[0]);
    free(r.request.at);
    if (code)
        trace_release(t);
    return code;
}

void trace_release(struct trace *t)
{
    free(t->request);
    map_release(&t->contexts);
    *t = (struct trace){ 0 };
}

void trace_scale(struct trace *t, double factor)
{
    for (int i = 0; i < t->n; i++)
        t->request[i].at = llround(fmin((double)t->request[i].at * factor, 9e18));
}

void trace_stretch(struct trace *t, double rate)
{
    double span = (double)t->request[t->n - 1].at, want = (t->n - 1) / rate * ns_per_s;

    for (int i = 0; i < t->n; i++) {
        double share = span > 0 ? (double)t->request[i].at / span : (double)i / (t->n > 1 ? t->n - 1 : 1);
        t->request[i].at = (int64_t)(share * want);
    }
}

/* ---- drawn contexts --------------------------------------------------------------- */

struct draw {
    double zipf, drift, churn;
};

/* One of the parts of NAME:NUMBER, separated by commas. */
static bool read_part(struct draw *d, const char *text, size_t n)
{
    const struct {
        const char *name;
        double *value;
    } part[] = { { "zipf:", &d->zipf }, { "drift:", &d->drift }, { "churn:", &d->churn } };
    char number[32] = "";

    for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
        size_t name = strlen(part[i].name);
        if (n <= name || n - name >= sizeof(number) || strncmp(text, part[i].name, name) != 0)
            continue;
        memcpy(number, text + name, n - name);
        return parse_real(number, part[i].value) && *part[i].value >= 0 && *part[i].value <= 1e9;
    }
    return false;
}

static int read_spec(struct draw *d, const char *spec, struct err *err)
{
    *d = (struct draw){ .zipf = -1 };
    for (const char *at = spec;; at++) {
        size_t n = strcspn(at, ",");
        if (!read_part(d, at, n))
            d->zipf = -1;
        at += n;
        if (*at == '\0' || d->zipf < 0)
            break;
    }
    return d->zipf >= 0 ? 0 : err_set(err, ERR_USAGE, "'%s' is neither map nor zipf:S[,drift:D][,churn:C]", spec);
}

/* The rank, from 0, up to which a share of all requests goes. */
static int rank_of(const double *until, int n, double share)
{
    int low = 0, high = n - 1;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (until[middle] > share)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* In turn; a trace without contexts stays without. */
static void map_contexts(struct trace *t, int n_contexts)
{
    for (int i = 0; i < t->n; i++)
        if (t->request[i].context >= 0)
            t->request[i].context %= n_contexts;
}

int trace_draw(struct trace *t, const char *spec, int n_contexts, uint64_t seed, struct err *err)
{
    struct rng rng = rng_named(seed, "contexts");
    struct draw d;
    double sum = 0, churned = 0;

    if (strcmp(spec, "map") == 0) {
        map_contexts(t, n_contexts);
        return 0;
    }
    if (read_spec(&d, spec, err))
        return err->code;
    double *until = malloc(((size_t)n_contexts + 1) * sizeof(*until));
    int32_t *of_rank = malloc(((size_t)n_contexts + 1) * sizeof(*of_rank));
    if (!until || !of_rank) {
        free(until);
        free(of_rank);
        return err_nomem(err);
    }
    for (int r = 0; r < n_contexts; r++) {
        until[r] = sum += pow(r + 1, -d.zipf);
        of_rank[r] = r;
    }
    for (int r = n_contexts - 1; r > 0; r--) { /* which context is popular has nothing to do with its number */
        int other = (int)rng_below(&rng, (uint64_t)r + 1);
        int32_t swapped = of_rank[r];
        of_rank[r] = of_rank[other];
        of_rank[other] = swapped;
    }
    for (int i = 0; i < t->n; i++) {
        double passed = (double)i / t->n;
        for (; churned < floor(passed * d.churn); churned++) {
            int other = (int)rng_below(&rng, (uint64_t)n_contexts);
            int32_t swapped = of_rank[0];
            of_rank[0] = of_rank[other];
            of_rank[other] = swapped;
        }
        int shift = (int)fmod(passed * d.drift * n_contexts, n_contexts);
        int rank = rank_of(until, n_contexts, rng_unit(&rng) * sum);
        t->request[i].context = of_rank[(rank + shift) % n_contexts];
    }
    free(until);
    free(of_rank);
    return 0;
}
