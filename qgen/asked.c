/* asked.c - a list of questions per slice. A context has its lists while it is being asked about: they are freed when
 * it is answered or given up.
 */
#include "qgen/asked.h"

#include "qgen/prompt.h"

#include <stdlib.h>
#include <string.h>

struct asked_context {
    struct question_list *slice; // (n_slices); NULL: not wanted, answered or given up
    int n_slices, n_open;        // n_open: slices without their questions yet
};

int asked_slices(const struct asked *a, int context)
{
    return prompt_slices(strlen(a->contexts->at[context].text), a->window, a->per_context);
}

static int open_context(const struct asked *a, int context, struct err *err)
{
    struct asked_context *c = &a->at[context];

    c->n_slices = asked_slices(a, context);
    c->slice = calloc((size_t)c->n_slices, sizeof(*c->slice));
    if (!c->slice)
        return err_nomem(err);
    for (int i = 0; i < c->n_slices; i++)
        c->n_open += prompt_share(a->per_context, i, c->n_slices) > 0;
    return 0;
}

static void close_context(struct asked_context *c)
{
    for (int i = 0; c->slice && i < c->n_slices; i++)
        question_list_release(&c->slice[i]);
    free(c->slice);
    c->slice = NULL;
}

int asked_open(struct asked *a, const bool *wanted, struct err *err)
{
    a->at = calloc((size_t)a->contexts->n + 1, sizeof(*a->at));
    if (!a->at)
        return err_nomem(err);
    for (int i = 0; i < a->contexts->n; i++)
        if (wanted[i] && open_context(a, i, err))
            return err->code;
    return 0;
}

void asked_close(struct asked *a)
{
    for (int i = 0; a->at && i < a->contexts->n; i++)
        close_context(&a->at[i]);
    free(a->at);
    a->at = NULL;
}

bool asked_is_open(const struct asked *a, struct asked_slice s)
{
    const struct asked_context *c = &a->at[s.context];

    return c->slice && c->slice[s.slice].n == 0 && prompt_share(a->per_context, s.slice, c->n_slices) > 0;
}

bool asked_next(struct asked *a, struct asked_slice *s)
{
    for (; a->next_context < a->contexts->n; a->next_context++, a->next_slice = 0) {
        const struct asked_context *c = &a->at[a->next_context];
        while (c->slice && a->next_slice < c->n_slices) {
            *s = (struct asked_slice){ a->next_context, a->next_slice++, c->n_slices };
            if (asked_is_open(a, *s))
                return true;
        }
    }
    return false;
}

void asked_body(const struct asked *a, struct asked_slice s, unsigned use, struct buf *out)
{
    const char *text = a->contexts->at[s.context].text;
    struct text_slice slice = prompt_slice(text, strlen(text), s.slice, s.n_slices);

    prompt_request(out, &(struct prompt){ .model = a->model,
                                          .text = text + slice.at,
                                          .n = slice.n,
                                          .questions = prompt_share(a->per_context, s.slice, s.n_slices),
                                          .use = use,
                                          .effort = a->effort,
                                          .reply_tokens = a->reply_tokens });
}

bool asked_affords(const struct asked *a, size_t n)
{
    return a->max_tokens == 0 || a->taken + a->pending + (int64_t)n + a->reply_tokens <= a->max_tokens;
}

void asked_sent(struct asked *a, size_t n)
{
    a->pending += (int64_t)n + a->reply_tokens;
}

void asked_done(struct asked *a, size_t n)
{
    a->pending -= (int64_t)n + a->reply_tokens;
}

/* All slices have their questions: makes one list in the order of the text, with at most the number asked for. */
static int finish_context(struct asked *a, int context, struct err *err)
{
    struct asked_context *c = &a->at[context];
    struct question_list all = { 0 };
    int code = 0;

    for (int p = 0; p < c->n_slices && !code; p++) {
        question_list_cut(&c->slice[p], prompt_share(a->per_context, p, c->n_slices));
        for (int q = 0; q < c->slice[p].n && !code; q++)
            code = question_list_add(&all, c->slice[p].at[q].text, strlen(c->slice[p].at[q].text), (size_t)p, err);
    }
    close_context(c);
    if (!code)
        code = a->events.answered(a->events.arg, context, &all, err);
    question_list_release(&all);
    return code;
}

int asked_give(struct asked *a, struct asked_slice s, struct question_list *list, struct err *err)
{
    if (list->n == 0 || !asked_is_open(a, s)) {
        question_list_release(list);
        return 0;
    }
    a->at[s.context].slice[s.slice] = *list;
    *list = (struct question_list){ 0 };
    return --a->at[s.context].n_open == 0 ? finish_context(a, s.context, err) : 0;
}

int asked_read(struct asked *a, struct asked_slice s, const struct reply_body *body, struct usage *usage,
               struct err *err)
{
    struct question_list list = { 0 };
    struct usage used = { 0 };
    struct err why;
    int code = reply_read(&list, (size_t)s.slice, &used, body, err);

    usage_add(usage, &used);
    a->taken += used.prompt + used.completion;
    question_list_cut(&list, prompt_share(a->per_context, s.slice, s.n_slices));
    if ((!code || code == ERR_FORMAT) && a->events.replied(a->events.arg, s, &list, &used, &why)) {
        *err = why;
        code = err->code;
    }
    if (!code)
        code = asked_give(a, s, &list, err);
    question_list_release(&list);
    return code;
}

void asked_fail(struct asked *a, int context, const struct err *why)
{
    if (!a->at[context].slice)
        return;
    close_context(&a->at[context]);
    a->events.failed(a->events.arg, context, why);
}
