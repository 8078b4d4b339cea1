/* profile_say.c - evp-profile's messages before the work, and with -v at the end. */
#include "cmd/profile_say.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "cmd/next.h"
#include "cmd/summary.h"
#include "kernels/timed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The contexts and questions that cannot be profiled. */
static void say_refused(const struct grid *g)
{
    int n = g->n_refused + g->n_refused_questions;

    for (int i = 0; i < g->why.n; i++)
        log_error("%s", g->why.at[i]);
    if (n > g->why.n)
        log_error("%d more contexts or questions cannot be profiled", n - g->why.n);
}

void profile_say_plan(const struct grid *g, const char *output)
{
    say_refused(g);
    for (int i = 0; i < g->n_work; i++)
        if (g->work[i].is_cut)
            log_warn("context '%s' is cut to its first %d of %d tokens", g->work[i].context->id, g->work[i].ids.n,
                     g->work[i].ids.n + g->work[i].n_cut);
    if (g->n_found)
        log_info("'%s' already has %lld answers", output, (long long)g->n_found);
    if (g->n_answers == 0 && g->n_work > 0)
        log_info("nothing to do");
    if (g->n_answers > 0)
        log_info("to do: %d contexts of %lld tokens, %lld variants, %lld questions: %lld answers of up to %d tokens",
                 g->n_contexts, (long long)g->n_tokens, (long long)g->n_variants, (long long)g->n_questions,
                 (long long)g->n_answers, g->max_new_tokens);
    if (g->n_sampled > 0)
        log_info("and %lld more answers of the uncompressed cache, sampled at temperature %g, to measure how alike two "
                 "good answers are",
                 (long long)g->n_sampled, g->temperature);
}

void profile_say_lacks(const struct cells *chosen)
{
    if (chosen->n_unknown)
        log_warn("%d context%s of the manifest %s not in CONTEXTS", chosen->n_unknown,
                 chosen->n_unknown == 1 ? "" : "s", chosen->n_unknown == 1 ? "is" : "are");
    if (chosen->n_untested)
        log_warn("%d compressed context%s no test questions", chosen->n_untested,
                 chosen->n_untested == 1 ? " has" : "s have");
}

void profile_say_counts(const struct grid *g, int n_lost, int n_forgotten, const char *output)
{
    if (n_forgotten)
        log_info("%d context%s left '%s': no question within --forget before the newest one", n_forgotten,
                 n_forgotten == 1 ? "" : "s", output);
    summary_int("contexts", g->n_contexts);
    summary_int("answers", g->n_answers);
    summary_int("answers_sampled", g->n_sampled);
    summary_int("answers_found", g->n_found);
    summary_int("contexts_later", g->n_left);
    summary_int("contexts_left_out", n_lost);
    summary_int("questions_left_out", g->n_refused_questions);
    summary_int("contexts_forgotten", n_forgotten);
}

void profile_say_left_out(const struct grid *g, int n_lost)
{
    if (g->n_left)
        log_info("the time is up: %d context%s left for another run", g->n_left, g->n_left == 1 ? " is" : "s are");
    if (n_lost)
        log_error("%d of %d contexts failed and are left out", n_lost, g->n_work + g->n_refused);
    if (g->n_refused_questions)
        log_error("%d question%s left out", g->n_refused_questions, g->n_refused_questions == 1 ? " is" : "s are");
}

void profile_say_failed(const char *why, bool go_on)
{
    log_error("%s%s", why, go_on ? "; the other devices go on" : "");
}

void profile_say_memory(const struct engine_plan *plan)
{
    char size[TEXT_SHORT], limit[TEXT_SHORT];

    log_info("memory: %s of at most %s, for up to %d variants and %d questions together",
             text_bytes(size, (double)plan->total), text_bytes(limit, (double)plan->limit), plan->variants,
             plan->sequences);
    for (int i = 0; i < PLAN_AREAS; i++)
        if (plan->bytes[i])
            log_debug("%s: %s", plan_area_name[i], text_bytes(size, (double)plan->bytes[i]));
}

void profile_say_cost(const struct profile_device *d, double seconds, int n_devices)
{
    bool on_gpu = strncmp(d->kind, "cuda", 4) == 0;
    char time[TEXT_SHORT], hours[TEXT_SHORT], devices[TEXT_SHORT] = "";

    if (n_devices > 1)
        snprintf(devices, sizeof(devices), " on %d devices", n_devices);
    log_info("about %s%s (%s), at %.0f GFLOP/s, the speed of backend %s here in %s%s", text_seconds(time, seconds),
             devices, profile_hours(hours, seconds * n_devices, on_gpu), d->speed / 1e9, d->kind, dtype_name(d->dtype),
             clock_is_busy((struct clock_wait){ 0 }) ? "; busy: other work shares the cores, so this is rough" : "");
}

void profile_say_hour(char **argv, double seconds, const char *output)
{
    static const char *const more[] = { "--sample", "1h", "-o", "profile.h5" };
    const char *word[256] = { "evp-profile" };
    int n = 1;

    if (!(seconds > 5400))
        return;
    for (char **given = argv + 1; *given && n < 250; given++)
        if (strcmp(*given, "--dry-run") != 0 && strcmp(*given, "-n") != 0)
            word[n++] = *given;
    for (int i = 0; i < (output ? 2 : 4); i++)
        word[n++] = more[i];
    log_info("an hour measures random contexts, and predicts the others (docs/sampled.md); later runs go on");
    next_words(word);
}

void profile_say_ops(const struct backend *be)
{
    struct op_time op[TIMED_OPS];
    int n = timed_list(be, op);

    log_info("%-14s %10s %10s %10s %10s", "op", "calls", "seconds", "GFLOP/s", "GB/s");
    for (int i = 0; i < n; i++) {
        double seconds = op[i].seconds > 1e-9 ? op[i].seconds : 1e-9;
        log_info("%-14s %10lld %10.3f %10.1f %10.1f", op[i].name, (long long)op[i].calls, op[i].seconds,
                 op[i].flop / seconds / 1e9, op[i].bytes / seconds / 1e9);
    }
}

void profile_say_timing(const struct timing *t)
{
    char fast[TEXT_SHORT], slow[TEXT_SHORT], took[TEXT_SHORT];

    if (t->n_side > 0)
        log_debug("the model repeated %d contexts in %s, which is part of the time to compress, not of the prefills",
                  t->n_side, text_seconds(took, t->side_s));
    if (t->n_repeated == 0)
        return;
    log_info("measured the prefill of %d of %d contexts again in %s; times differ by at most %s", t->n_repeated,
             t->n_contexts, text_seconds(took, t->repeated_s), text_seconds(fast, t->worst.slowest - t->worst.fastest));
    if (t->n_noisy)
        log_warn(
            "times are noisy: the prefill of context '%s' took %s and %s; something else runs on this machine, and "
            "the fastest time counts",
            t->worst_id, text_seconds(fast, t->worst.fastest), text_seconds(slow, t->worst.slowest));
}

const char *profile_hours(char out[TEXT_SHORT], double seconds, bool on_gpu)
{
    double hours = seconds / 3600;

    snprintf(out, TEXT_SHORT, "%.*g %shours", hours < 99 ? 2 : 9, hours < 99 ? hours : round(hours),
             on_gpu ? "GPU " : "");
    return out;
}

/* ---- how it was made --------------------------------------------------------------- */

/* SHA-256 of an input; null when it is a pipe. */
static int put_digest(struct json_out *w, const char *name, const char *path, struct err *err)
{
    char hex[DIGEST_HEX];
    struct stat st;

    if (strcmp(path, "-") == 0 || stat(path, &st) || !S_ISREG(st.st_mode)) {
        json_put_null(w, name);
        return 0;
    }
    if (digest_file(path, hex, err))
        return err->code;
    json_put_text(w, name, hex);
    return 0;
}

/* The member "inputs". */
static int put_inputs(struct buf *out, char *const *input, struct err *err)
{
    struct json_out w = { .buf = out };

    json_begin(&w, NULL, '{');
    int code = put_digest(&w, "contexts", input[0], err);
    if (!code)
        code = put_digest(&w, "questions", input[1], err);
    json_end(&w, '}');
    return code;
}

char *profile_lineage(struct rows_made *made, char *const *input, struct err *err)
{
    struct buf inputs = { 0 }, lineage = { 0 };
    int code = put_inputs(&inputs, input, err);

    made->inputs = buf_str(&inputs);
    rows_made_to_text(made, &lineage);
    buf_release(&inputs);
    char *text = code ? NULL : buf_take(&lineage);
    if (!text && !code)
        err_nomem(err);
    buf_release(&lineage);
    return text;
}

void profile_say_resumed(const struct profile_device *device, const struct model *model, const char *have,
                         const char *file)
{
    enum dtype own = strncmp(device->kind, "cuda", 4) == 0 && !model_is_f32(model) ? DTYPE_BF16 : DTYPE_F32;

    if (have && device->dtype != own)
        log_info("computing in %s, as the answers in '%s' are; a new file would be in %s", dtype_name(device->dtype),
                 file, dtype_name(own));
}
