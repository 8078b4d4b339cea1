/* request_logs.c - messages while logs are read, and after it. */
#include "cmd/request_logs.h"

#include "base/log.h"
#include "show/model_say.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "cmd/summary.h"

#include <inttypes.h>

enum { SAID_BYTES = 64 << 20 }; // before a progress bar

static int want(void *arg, const char *name, size_t n)
{
    struct map *wanted = arg;

    return n == 0 || map_add(wanted, name, n, NULL) >= 0 ? 0 : ERR_NOMEM;
}

int request_logs_wanted(struct map *wanted, const struct opt_list *dataset, struct err *err)
{
    for (int i = 0; i < dataset->n; i++)
        if (opt_split(dataset->at[i], want, wanted))
            return err_nomem(err);
    if (dataset->n && !wanted->n)
        return err_set(err, ERR_USAGE, "--dataset needs a name");
    return 0;
}

static void say_damaged(void *arg, const char *sentence)
{
    (void)arg;
    log_warn("%s", sentence);
}

static void say_unread(void *arg, const char *sentence)
{
    (void)arg;
    log_warn("%s; what can be read of the logs counts", sentence);
}

static void say_reading(void *arg, int64_t bytes)
{
    struct request_logs *logs = arg;

    if (logs->n_bytes < SAID_BYTES && logs->n_bytes + bytes >= SAID_BYTES)
        progress_begin(logs->what, 0);
    logs->n_bytes += bytes;
    progress_add((logs->n_bytes >> 20) - ((logs->n_bytes - bytes) >> 20));
}

/* What a log lacks, and its requests without a time. */
static void say_log(void *arg, const char *label, const struct request_log *log)
{
    const struct request_logs *logs = arg;
    enum request_lack lack = request_log_lack(log);

    if (lack < N_REQUEST_LACKS)
        log_warn("%s has %s: %s", label, request_lack_what(lack), request_lack_remedy(lack));
    if (logs->rq->half_life > 0 && log->n_timeless)
        log_warn("%s has %" PRId64 " request%s without a time, which count%s as new", label, log->n_timeless,
                 log->n_timeless == 1 ? "" : "s", log->n_timeless == 1 ? "s" : "");
}

void request_logs_listen(struct request_logs *logs, struct requests *rq, const char *what)
{
    *logs = (struct request_logs){ .rq = rq, .what = what };
    rq->damaged = say_damaged;
    rq->unread = say_unread;
    rq->reading = say_reading;
    rq->read = say_log;
    rq->arg = logs;
}

/* Fields that no table knows. Their names are a client's, not words of a prompt. */
static void say_unknown(const struct request_line *l)
{
    struct buf list = { 0 };
    int64_t others = l->n_unknown[REQUEST_UNKNOWN_MAX - 1];

    for (int i = 0; i < l->unknown.n; i++) {
        const char *name = l->unknown.at[i].key;
        others += *name ? 0 : l->n_unknown[i];
        if (*name)
            buf_printf(&list, "%s'%s' in %" PRId64 " request%s", list.n ? ", " : "", name, l->n_unknown[i],
                       l->n_unknown[i] == 1 ? "" : "s");
    }
    if (others)
        buf_printf(&list, "%sothers %" PRId64 " times", list.n ? ", " : "", others);
    if (list.n)
        log_warn("unknown field %s: ignored (docs/requests.md)", buf_str(&list));
    buf_release(&list);
}

static void put_flaws(const struct request_line *l, const char *name, int from, int to)
{
    json_begin(summary_json(), name, '{');
    for (int i = from; i < to; i++)
        if (l->flaws[i])
            json_put_int(summary_json(), request_flaw_text((enum request_flaw)i), l->flaws[i]);
    json_end(summary_json(), '}');
}

void request_logs_say_left_out(const struct requests *rq)
{
    const struct request_line *l = &rq->line;

    for (int i = 0; i < REQUEST_ASIDE; i++)
        if (l->flaws[i])
            log_warn("%" PRId64 " request%s left out: %s", l->flaws[i], l->flaws[i] == 1 ? "" : "s",
                     request_flaw_text((enum request_flaw)i));
    if (rq->n_damaged)
        log_warn("%" PRId64 " line%s left out", rq->n_damaged, rq->n_damaged == 1 ? "" : "s");
    for (int i = REQUEST_ASIDE; i < N_REQUEST_FLAWS; i++)
        if (l->flaws[i])
            log_info("%" PRId64 " not counted: %s", l->flaws[i], request_flaw_text((enum request_flaw)i));
    if (l->n_salted)
        log_info("%" PRId64 " request%s with a cache salt: those with different salts share nothing", l->n_salted,
                 l->n_salted == 1 ? "" : "s");
    say_unknown(l);
    if (l->n_requests == 0 && l->fields.n)
        log_warn("rows are JSON objects with %s", buf_str(&l->fields));
    if (request_writer(l))
        json_put_text(summary_json(), "written_by", request_writer(l));
    summary_int("logs_unread", rq->n_unread);
    summary_int("requests_found", rq->n_used + rq->n_left_out);
    summary_int("rows_left_out", rq->n_left_out);
    summary_int("rows_not_recognised", rq->n_unknown);
    put_flaws(l, "left_out", 0, REQUEST_ASIDE);
    put_flaws(l, "not_counted", REQUEST_ASIDE, N_REQUEST_FLAWS);
}

bool request_logs_lack(const struct requests *rq)
{
    return rq->line.n_flawed || rq->n_damaged * 100 > rq->n_lines || rq->n_unread;
}

void request_logs_say(const struct requests *rq)
{
    char span[TEXT_SHORT];
    const struct request_line *l = &rq->line;

    log_info("%" PRId64 " requests in %" PRId64 " lines%s%s", l->n_requests, rq->n_lines,
             rq->last > rq->first ? ", over " : "",
             rq->last > rq->first ? text_seconds(span, rq->last - rq->first) : "");
    if (rq->models.n > 1 && (!rq->wanted || rq->wanted->n == 0))
        log_warn("the logs have requests to %d models, '%s' and '%s' among them; if these are not names of one model, "
                 "choose with --dataset",
                 rq->models.n, rq->models.at[0].key, rq->models.at[1].key);
}

/* The words around what changes, on one line. */
static void add_words(struct buf *words, const struct prompt_stamp *s)
{
    enum { BEFORE = 40, BEHIND = 12, SHOWN = 72 };
    size_t begin = s->begin, end = s->end + BEHIND < s->n_head ? s->end + BEHIND : s->n_head;

    while (begin > 0 && s->begin - begin < BEFORE && (unsigned char)s->head[begin - 1] >= ' ' &&
           (unsigned char)s->head[begin - 1] != 0xff)
        begin--;
    utf8_clean(words, s->head + begin, (end < begin + SHOWN ? end : begin + SHOWN) - begin);
    for (size_t i = 0; i < words->n; i++)
        words->at[i] = words->at[i] == '\n' || words->at[i] == '\t' ? ' ' : words->at[i];
    if (words->at)
        utf8_defuse(words->at);
}

static int say_stamps(const struct gain_stamps *g, struct err *err)
{
    struct buf words = { 0 };

    if (g->n == 0 || g->share < g->share_now + 0.01)
        return 0;
    add_words(&words, g->best);
    if (buf_failed(&words))
        return err_nomem(err);
    log_warn("%" PRId64
             " prompts are alike but for a few bytes near their beginning, of most of them bytes %zu to %zu, "
             "'%s': without these %.2f of the prompts would come again, not %.2f; put what changes behind what stays",
             g->n, g->best->begin, g->best->end - 1, buf_str(&words), g->share, g->share_now);
    buf_release(&words);
    return 0;
}

double replayed_unit(int time_unit)
{
    static const double units[] = { 0, 1, 1e-3, 1e-6, 1e-9 };

    return units[time_unit];
}

/* What was found out of a trace, or assumed. */
static void say_trace(const struct replayed_logs *r, const struct replayed_from *from)
{
    const struct trace_reading *t = &r->rq.line.trace;

    if (r->log.facts.last > r->log.facts.first && !from->time_unit)
        request_logs_say_unit(t->found_unit);
    if (r->log.facts.n && t->block != TRACE_BLOCK)
        log_info("blocks of %d tokens, which fit the traces' rows", (int)t->block);
    if (t->n_counts)
        log_info("assumed: the contexts of %" PRId64 " requests, %s", t->n_counts, from->reuse);
    if (t->n_sessions)
        log_info("assumed: one of the %" PRId64 " sessions begins every minute", t->n_sessions);
}

void request_logs_say_unit(double unit)
{
    log_info("times of the trace are read as %s; --time-unit says otherwise", unit == 1      ? "seconds"
                                                                              : unit == 1e-3 ? "milliseconds"
                                                                              : unit == 1e-6 ? "microseconds"
                                                                                             : "nanoseconds");
}

static int read_logs(struct replayed_logs *r, const struct replayed_from *from, struct err *err)
{
    struct request_logs logs;
    struct map wanted = { 0 };
    int code = request_logs_wanted(&wanted, from->dataset, err);

    if (!code && from->reuse)
        code = trace_reuse_parse(&r->reuse, from->reuse, err);
    r->rq.line.trace.reuse = from->reuse ? &r->reuse : NULL;
    r->rq.line.trace.unit = replayed_unit(from->time_unit);
    r->rq.wanted = &wanted;
    r->rq.lenient = from->n > 1;
    request_logs_listen(&logs, &r->rq, "MiB of logs");
    for (int i = 0; i < from->n && !code; i++)
        code = requests_open(&r->rq, from->path[i], err);
    if (!code)
        code = gain_log_read(&r->log, &r->rq, err);
    progress_end();
    if (!code)
        code = gain_log_stamps(&r->log, &r->rq, err);
    request_logs_say_left_out(&r->rq);
    if (!code) {
        request_logs_say(&r->rq);
        say_trace(r, from);
    }
    if (!code)
        code = say_stamps(&r->log.stamped, err);
    r->rq.wanted = NULL;
    map_release(&wanted);
    return code;
}

int replayed_logs_read(struct replayed_logs *r, const struct replayed_from *from, struct err *err)
{
    if (gain_model_open(&r->model, from->model, from->gpu, err))
        return err->code;
    model_say_shape(&r->model.shape);
    if (read_logs(r, from, err) || gain_model_measure(&r->model, from->model, &r->log, err))
        return err->code;
    if (r->model.unread.code)
        log_warn("%s", r->model.unread.msg);
    return 0;
}

void replayed_logs_release(struct replayed_logs *r)
{
    requests_close(&r->rq);
    gain_log_release(&r->log);
    gain_model_close(&r->model);
    trace_reuse_release(&r->reuse);
}
