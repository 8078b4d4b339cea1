/* split.c - translating and compiling patterns for PCRE2, and the recursion over steps: each piece of one step is a
 * subject of its own for the next.
 */
#include "engine/tokens/split.h"

#include "base/buf.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Backtracking steps that one match may take; real patterns need a handful per character. */
enum { MATCH_LIMIT = 5 * 1000 * 1000 };

/* The code points with the property White_Space, and all others, as the inside of a character class. */
#define SPACE                                                                                                          \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define NO_SPACE                                                                                                       \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}" \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

struct split_step {
    pcre2_code *code;
    pcre2_match_context *context;
};

static void step_free(struct split_step *step)
{
    if (!step)
        return;
    pcre2_code_free(step->code);
    pcre2_match_context_free(step->context);
    free(step);
}

void splitter_release(struct splitter *s)
{
    for (int i = 0; i < s->n; i++)
        step_free(s->step[i]);
    *s = (struct splitter){ 0 };
}

/* Writes \s and \S out. A class inside a class is refused: the libraries that these patterns were written for read it
 * differently. */
static int translate(struct buf *out, const char *pattern, struct err *err)
{
    bool in_class = false;

    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && (p[1] == 's' || p[1] == 'S')) {
            buf_printf(out, in_class ? "%s" : "[%s]", p[1] == 's' ? SPACE : NO_SPACE);
            p++;
        } else if (*p == '\\' && p[1]) {
            buf_add(out, p++, 2);
        } else if (in_class && *p == '[') {
            return err_set(err, ERR_FORMAT, "the split pattern '%.200s' has a class inside a class", pattern);
        } else {
            if (*p == '[' || *p == ']')
                in_class = *p == '[';
            buf_addc(out, *p);
        }
    }
    return buf_failed(out) ? err_nomem(err) : 0;
}

static int compile(struct split_step *step, const char *pattern, struct err *err)
{
    struct buf text = { 0 };
    int code = 0;
    size_t at = 0;

    if (translate(&text, pattern, err)) {
        buf_release(&text);
        return err->code;
    }
    step->code = pcre2_compile((PCRE2_SPTR)buf_str(&text), text.n, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    buf_release(&text);
    if (!step->code) {
        char why[128];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why));
        return err_set(err, ERR_FORMAT, "the split pattern '%.200s' does not compile: %s", pattern, why);
    }
    /* without JIT the interpreter runs it */
    pcre2_jit_compile(step->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    step->context = pcre2_match_context_create(NULL);
    if (!step->context)
        return err_nomem(err);
    pcre2_set_match_limit(step->context, MATCH_LIMIT);
    return 0;
}

int splitter_add(struct splitter *s, const char *pattern, struct err *err)
{
    if (s->n == SPLIT_STEPS)
        return err_set(err, ERR_FORMAT, "more than %d split patterns", SPLIT_STEPS);
    struct split_step *step = calloc(1, sizeof(*step));
    if (!step)
        return err_nomem(err);
    if (compile(step, pattern, err)) {
        step_free(step);
        return err->code;
    }
    s->step[s->n++] = step;
    return 0;
}

struct split_run {
    const struct splitter *s;
    const struct split_job *job;
    pcre2_match_data *match[SPLIT_STEPS];
    struct err *err;
};

/* Bytes first .. end - 1 of the text, which are the subject of one step, and whether more may follow them. */
struct subject {
    size_t first, end;
    enum text_end is;
};

/* The next match, as bytes of the text. first = end: none. */
struct found {
    size_t first, end;
    bool certain; // false: more text might change it, but no match begins before `first`
};

static int match(const struct split_run *r, int step, struct subject s, size_t at)
{
    const struct split_step *st = r->s->step[step];
    PCRE2_SPTR text = (PCRE2_SPTR)r->job->text.at + s.first;
    const uint32_t partial = s.is == END_OPEN ? PCRE2_PARTIAL_HARD : 0;
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | partial;

    int code = pcre2_match(st->code, text, s.end - s.first, at - s.first, options, r->match[step], st->context);
    if (code != PCRE2_ERROR_JIT_STACKLIMIT)
        return code;
    return pcre2_match(st->code, text, s.end - s.first, at - s.first, options | PCRE2_NO_JIT, r->match[step],
                       st->context);
}

/* Finds the next match from `at` on. For look-ahead, the end of a closed subject is the end of the text. */
static int next_match(const struct split_run *r, int step, struct subject s, size_t at, struct found *found)
{
    int code = match(r, step, s, at);

    *found = (struct found){ s.end, s.end, s.is == END_CLOSED };
    if (code == PCRE2_ERROR_NOMATCH)
        return 0;
    if (code < 0 && code != PCRE2_ERROR_PARTIAL) {
        char why[128];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why));
        return err_set(r->err, ERR_FORMAT, "the tokenizer's split pattern failed: %s", why);
    }
    const size_t *place = pcre2_get_ovector_pointer(r->match[step]);
    const size_t first = s.first + place[0], end = s.first + place[1];
    if (code == PCRE2_ERROR_PARTIAL)
        found->first = first > at ? first : at;
    else if (first >= at && end > first) /* \K can put a match before its start */
        *found = (struct found){ first, end, true };
    return 0;
}

/* Hands a piece over. */
static int give(const struct split_run *r, struct subject s)
{
    const struct split_job *job = r->job;
    const struct text_view piece = { job->text.at + s.first, s.end - s.first };
    size_t done = 0;

    if (s.is == END_CLOSED)
        return job->each(job->arg, piece, r->err);
    int code = job->open(job->arg, piece, &done, r->err);
    job->mark->at[r->s->n] = s.first + done;
    return code;
}

static int run_step(const struct split_run *r, int step, struct subject s);

/* The gap and the match are pieces of their own: subjects of the next step. */
static int run_pieces(const struct split_run *r, int step, size_t at, const struct found *f)
{
    int code = 0;

    if (f->first > at)
        code = run_step(r, step + 1, (struct subject){ at, f->first, END_CLOSED });
    if (!code && f->end > f->first)
        code = run_step(r, step + 1, (struct subject){ f->first, f->end, END_CLOSED });
    return code;
}

static int run_step(const struct split_run *r, int step, struct subject s)
{
    size_t *mark = &r->job->mark->at[step], at = *mark > s.first ? *mark : s.first;
    if (step == r->s->n)
        return at < s.end ? give(r, (struct subject){ at, s.end, s.is }) : 0;
    while (at < s.end) {
        struct found f;
        if (next_match(r, step, s, at, &f))
            return r->err->code;
        if (!f.certain) {
            *mark = at;
            return run_step(r, step + 1, (struct subject){ at, f.first, END_OPEN });
        }
        int code = run_pieces(r, step, at, &f);
        if (code)
            return code;
        at = f.end;
    }
    if (s.is == END_OPEN)
        *mark = at;
    return 0;
}

int splitter_run(const struct splitter *s, const struct split_job *job, struct err *err)
{
    struct split_run r = { .s = s, .job = job, .err = err };
    int code = 0;

    for (int i = 0; i < s->n; i++) {
        r.match[i] = pcre2_match_data_create(1, NULL);
        if (!r.match[i])
            code = err_nomem(err);
    }
    if (!code && job->text.n > 0)
        code = run_step(&r, 0, (struct subject){ 0, job->text.n, job->end });
    for (int i = 0; i < s->n; i++)
        pcre2_match_data_free(r.match[i]);
    return code;
}
