/* split.c - patterns translated for PCRE2 and compiled, and the recursion over steps: each piece of one step is a
 * subject of its own for the next.
 */
#include "engine/split.h"

#include "base/buf.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Backtracking steps one match may take; real patterns need a handful per character. */
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

/* Writes \s and \S out. A class inside a class has another meaning in the libraries that these patterns were written
 * for, so it is refused. */
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
    pcre2_jit_compile(step->code, PCRE2_JIT_COMPLETE); /* without JIT the interpreter runs it */
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
    pcre2_match_data *match[SPLIT_STEPS];
    int (*each)(void *arg, struct text_view piece, struct err *err);
    void *arg;
    struct err *err;
};

/* Finds the next match from `at` on: 1 and its place, 0 when there is none, or an error. To look-ahead the end of the
 * piece is the end of the text. */
static int next_match(const struct split_run *r, int step, struct text_view text, size_t at, const size_t **place)
{
    const struct split_step *st = r->s->step[step];
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;

    int found = pcre2_match(st->code, (PCRE2_SPTR)text.at, text.n, at, options, r->match[step], st->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found =
            pcre2_match(st->code, (PCRE2_SPTR)text.at, text.n, at, options | PCRE2_NO_JIT, r->match[step], st->context);
    if (found == PCRE2_ERROR_NOMATCH)
        return 0;
    if (found < 0) {
        char why[128];
        pcre2_get_error_message(found, (PCRE2_UCHAR *)why, sizeof(why));
        return err_set(r->err, ERR_FORMAT, "the tokenizer's split pattern failed: %s", why);
    }
    *place = pcre2_get_ovector_pointer(r->match[step]);
    return (*place)[0] < at || (*place)[1] <= (*place)[0] ? 0 : 1; /* \K can put a match before its start */
}

static int run_step(const struct split_run *r, int step, struct text_view text)
{
    const size_t *place = NULL;
    size_t at = 0;

    if (step == r->s->n)
        return r->each(r->arg, text, r->err);
    while (at < text.n) {
        int found = next_match(r, step, text, at, &place);
        if (found < 0)
            return found;
        const size_t cut[] = { at, found ? place[0] : text.n, found ? place[1] : text.n };
        for (int i = 0; i < 2; i++) { // the gap, then the match
            if (cut[i + 1] == cut[i])
                continue;
            int code = run_step(r, step + 1, (struct text_view){ text.at + cut[i], cut[i + 1] - cut[i] });
            if (code)
                return code;
        }
        at = cut[2];
    }
    return 0;
}

int splitter_run(const struct splitter *s, struct text_view text,
                 int (*each)(void *arg, struct text_view piece, struct err *err), void *arg, struct err *err)
{
    struct split_run r = { .s = s, .each = each, .arg = arg, .err = err };
    int code = 0;

    for (int i = 0; i < s->n; i++) {
        r.match[i] = pcre2_match_data_create(1, NULL);
        if (!r.match[i])
            code = err_nomem(err);
    }
    if (!code)
        code = run_step(&r, 0, text);
    for (int i = 0; i < s->n; i++)
        pcre2_match_data_free(r.match[i]);
    return code;
}
