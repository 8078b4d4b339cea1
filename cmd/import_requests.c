/* import_requests.c - the files, and the messages about the logs. No message contains words of a prompt. */
#include "cmd/import_requests.h"

#include "base/file.h"
#include "base/log.h"
#include "base/parse.h"
#include "cmd/next.h"
#include "cmd/request_logs.h"
#include "cmd/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUT_CONTEXTS, OUT_QUESTIONS, OUT_ACCESS, OUT_BEFORE, MAX_OUT };

static const struct {
    const char *name, *kind;
} files[MAX_OUT] = { { "contexts.jsonl", "contexts" },
                     { "questions.jsonl", "questions" },
                     { "access.jsonl", "access" },
                     { "access-before.jsonl", "access" } };

struct writing {
    struct import_requests *im;
    struct rows_out out[MAX_OUT];
    int n_out;                                 // files that are written
    int64_t n_contexts, n_questions, n_length; // n_length: contexts left out for their length
};

/* ---- messages ------------------------------------------------------------- */

static void say_next(const struct import_requests *im)
{
    const char *writer = request_writer(&im->rq.line);
    char *contexts = file_join(im->folder, files[OUT_CONTEXTS].name);
    char *questions = file_join(im->folder, files[OUT_QUESTIONS].name);

    log_info("evp-plan takes the access log: --access %s/%s%s%s%s%s", im->folder, files[OUT_ACCESS].name,
             im->rq.halves ? " --access-before " : "", im->rq.halves ? im->folder : "", im->rq.halves ? "/" : "",
             im->rq.halves ? files[OUT_BEFORE].name : "");
    if (writer && (strcmp(writer, "vllm") == 0 || strcmp(writer, "sglang") == 0 || strcmp(writer, "llama") == 0))
        log_info("evp-tiers --for %s, which wrote the log, keeps plans to what it can hold", writer);
    if (contexts && questions)
        next_say("evp-profile", contexts, questions, im->model ? "--model" : "", im->model ? im->model : "", "-o",
                 "profile.h5", NULL);
    free(contexts);
    free(questions);
}

/* How contexts come again: a cache that keeps them for less finds nothing. */
static void say_again(const struct requests *rq)
{
    char span[TEXT_SHORT];
    double again = requests_again(rq);

    summary_int("contexts_of_one_conversation", rq->n_alone);
    json_put_real(summary_json(), "again_median_s", again);
    if (again > 0)
        log_info("contexts came again %s after their last use (median)", text_seconds(span, again));
    if (rq->n_alone)
        log_info("%d more context%s would be of one conversation alone", rq->n_alone, rq->n_alone == 1 ? "" : "s");
}

static void say_written(const struct writing *w)
{
    const struct requests *rq = &w->im->rq;

    summary_int("contexts", w->n_contexts);
    summary_int("questions", w->n_questions);
    summary_int("requests", rq->n_used);
    summary_int("requests_covered", rq->n_covered);
    json_put_real(summary_json(), "requests_per_s", (double)rq->n_covered / (rq->last - rq->first));
    summary_int("contexts_forgotten", rq->n_forgotten);
    log_info("%" PRId64 " context%s with %" PRId64 " questions; %" PRId64 " of %" PRId64 " requests go to them",
             w->n_contexts, w->n_contexts == 1 ? "" : "s", w->n_questions, rq->n_covered, rq->n_used);
    say_again(rq);
    say_next(w->im);
    if (w->n_length)
        log_info("%" PRId64 " shared prefix%s left out: length not within --min-tokens and --max-tokens", w->n_length,
                 w->n_length == 1 ? "" : "es");
    if (rq->n_forgotten)
        log_info("%d shared prefix%s left out: no request within --forget before the last one", rq->n_forgotten,
                 rq->n_forgotten == 1 ? "" : "es");
    if (rq->n_lacking[SPLIT_TRAIN] || rq->n_lacking[SPLIT_TEST])
        log_warn("of the contexts %d have no train questions and %d no test questions; evp-qgen '%s/contexts.jsonl' "
                 "makes some",
                 rq->n_lacking[SPLIT_TRAIN], rq->n_lacking[SPLIT_TEST], w->im->folder);
}

/* ---- the files ------------------------------------------------------------ */

static int put_context(void *arg, struct context *c, struct err *err)
{
    struct writing *w = arg;
    const struct import_requests *im = w->im;

    if (im->count && im->count(im->arg, c, err))
        return err->code;
    if (im->count && (c->n_tokens < im->min_tokens || c->n_tokens > im->max_tokens)) {
        w->n_length++;
        return 1;
    }
    struct json_out row = rows_begin(&w->out[OUT_CONTEXTS]);
    context_to_json(c, &row);
    w->n_contexts++;
    return rows_put(&w->out[OUT_CONTEXTS], &row, err);
}

static int put_count(struct rows_out *out, const char *context, double uses, struct err *err)
{
    struct json_out row = rows_begin(out);

    json_put_text(&row, "context", context);
    json_put_real(&row, "count", uses);
    return rows_put(out, &row, err);
}

static int put_access(void *arg, const char *context, double uses, double uses_before, struct err *err)
{
    struct writing *w = arg;

    if (w->n_out > OUT_BEFORE && uses_before > 0 && put_count(&w->out[OUT_BEFORE], context, uses_before, err))
        return err->code;
    return w->n_out <= OUT_BEFORE || uses > 0 ? put_count(&w->out[OUT_ACCESS], context, uses, err) : 0;
}

static int put_question(void *arg, const struct question *q, struct err *err)
{
    struct writing *w = arg;
    struct json_out row = rows_begin(&w->out[OUT_QUESTIONS]);

    question_to_json(q, &row);
    w->n_questions++;
    return rows_put(&w->out[OUT_QUESTIONS], &row, err);
}

static int create(struct writing *w, struct err *err)
{
    if (file_mkdir(w->im->folder, err))
        return err->code;
    for (int i = 0; i < w->n_out; i++) {
        char *path = file_join(w->im->folder, files[i].name);
        w->im->made.kind = files[i].kind;
        int code = path ? rows_create(&w->out[i], path, &w->im->made, err) : err_nomem(err);
        free(path);
        if (code)
            return code;
    }
    return 0;
}

static int write_files(struct writing *w, struct err *err)
{
    const struct requests_sink sink = {
        .context = put_context, .question = put_question, .access = put_access, .arg = w
    };
    int code = create(w, err);

    if (!code)
        code = requests_write(&w->im->rq, &sink, err);
    if (!code && w->n_contexts == 0)
        code =
            err_set(err, ERR_FORMAT, "no prefix is long enough and shared by enough prompts that go on differently%s",
                    w->im->rq.n_forgotten ? ", and was used within --forget" : "");
    for (int i = 0; i < w->n_out; i++) {
        if (code)
            rows_abort(&w->out[i]);
        else
            code = rows_finish(&w->out[i], err);
    }
    return code;
}

/* Removes what an earlier import wrote, which would not fit. */
static int forget_before(const char *folder, struct err *err)
{
    char *path = file_join(folder, files[OUT_BEFORE].name);
    int code = path ? 0 : err_nomem(err);

    if (path && unlink(path) && errno != ENOENT)
        code = err_set(err, ERR_IO, "cannot remove '%s': %s", path, strerror(errno));
    free(path);
    return code;
}

int import_requests(struct import_requests *im, char **path, int n, struct err *err)
{
    struct requests *rq = &im->rq;
    struct writing w = { .im = im };
    struct request_logs logs;
    char *standard[] = { (char[]){ "-" } };
    int code = 0;

    rq->lenient = n > 1;
    request_logs_listen(&logs, rq, "MiB of logs, read three times");
    for (int i = 0; i < (n ? n : 1) && !code; i++)
        code = requests_open(rq, n ? path[i] : standard[0], err);
    if (!code)
        code = requests_find(rq, err);
    if (!code && rq->halves && !(rq->first < rq->last)) {
        log_warn("--halves needs requests with different times, and the logs have none: all uses are counted together");
        rq->halves = false;
        code = forget_before(im->folder, err);
    }
    w.n_out = rq->halves ? MAX_OUT : OUT_BEFORE;
    if (!code)
        code = write_files(&w, err);
    progress_end();
    request_logs_say_left_out(rq);
    if (!code) {
        request_logs_say(rq);
        say_written(&w);
        code = request_logs_lack(rq) ? 1 : 0;
    }
    requests_close(rq);
    return code;
}
