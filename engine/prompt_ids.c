/* prompt_ids.c - text to ids, and how far they are certain when more text will follow.
 *
 * Text is cleaned to UTF-8 and cut at added tokens into sections. Each section is normalised, split by the model's
 * patterns and merged piece by piece. When the end is open, each stage stops where the text that follows could change
 * its result: the search for added tokens where the text ends within one, the normal form before the last character
 * that can join with others, the splitter as engine/split.h says. A struct prompt_ids remembers the three places, so
 * that a question is tokenised from there on, whatever the length of its context.
 */
#include "base/utf8.h"
#include "engine/tokenizer_internal.h"

#include <assert.h>
#include <string.h>

/* What an encoding needs beside the prompt that it goes on with. */
struct encoding {
    struct prompt_ids *p;
    struct bpe_work work;
    struct tokens *out;
    size_t tail;     // of the rest: where the tail begins
    size_t at;       // of the rest: bytes that are in the section already
    bool first[256]; // which bytes an added token may begin with
};

static int encode_piece(void *arg, struct text_view piece, struct err *err)
{
    struct encoding *e = arg;

    return bpe_encode(&e->p->tokenizer->bpe, &e->work, piece, e->out, err);
}

/* Puts n bytes of the rest into the section, and adds the ids that are certain then. */
static int add_to_section(struct encoding *e, size_t n, enum text_end end, struct err *err)
{
    struct prompt_ids *p = e->p;
    const struct text_view more = { buf_str(&p->rest) + e->at, n };

    if (p->tokenizer->nfc && nfc_add(&p->section, more, err))
        return err->code;
    if (!p->tokenizer->nfc)
        buf_add(&p->section, more.at, more.n);
    if (buf_failed(&p->section))
        return err_nomem(err);
    e->at += n;
    const struct split_job job = {
        .text = { buf_str(&p->section), p->section.n }, .end = end, .mark = &p->mark, .each = encode_piece, .arg = e
    };
    return splitter_run(&p->tokenizer->splitter, &job, err);
}

/* The added tokens that begin at one place of the rest: the longest whole one, and whether the end cuts another. */
struct added_here {
    const struct added_token *token;
    bool cut;
};

/* Special tokens count where all their bytes are in the head or all are in the tail. */
static struct added_here added_at(const struct encoding *e, size_t at)
{
    const struct tokenizer *t = e->p->tokenizer;
    const char *text = buf_str(&e->p->rest) + at;
    size_t left = e->p->rest.n - at;
    size_t parsed = at < e->p->head ? e->p->head - at : at >= e->tail ? left : 0;
    struct added_here here = { NULL, false };

    for (int i = 0; i < t->added.n; i++) {
        const struct added_token *a = &t->added.at[i];
        size_t n = a->kind == ADDED_SPECIAL ? parsed : left;
        if (a->text[0] != text[0])
            continue;
        if (a->n <= n && memcmp(a->text, text, a->n) == 0 && (!here.token || a->n > here.token->n))
            here.token = a;
        else if (a->kind == ADDED_PLAIN && a->n > left && memcmp(a->text, text, left) == 0)
            here.cut = true;
    }
    return here;
}

/* Ends the section before the byte `at` of the rest; the next one is empty. */
static int end_section(struct encoding *e, size_t at, struct err *err)
{
    if (add_to_section(e, at - e->at, END_CLOSED, err))
        return err->code;
    buf_clear(&e->p->section);
    e->p->mark = (struct split_mark){ 0 };
    return 0;
}

static int add_token(struct encoding *e, const struct added_token *a, size_t at, struct err *err)
{
    if (end_section(e, at, err))
        return err->code;
    e->at = at + a->n;
    return tokens_add(e->out, a->id, err);
}

/* Forgets the bytes of the rest that are in the section. */
static void drop_done(struct prompt_ids *p, size_t done, size_t searched)
{
    p->rest.n -= done;
    if (p->rest.n > 0)
        memmove(p->rest.at, p->rest.at + done, p->rest.n);
    p->searched = searched - done;
    p->head = p->head > done ? p->head - done : 0;
}

static int encode_rest(struct encoding *e, enum text_end end, struct err *err)
{
    struct prompt_ids *p = e->p;
    size_t at = p->searched;

    while (at < p->rest.n) {
        struct added_here here = { NULL, false };
        if (e->first[(unsigned char)p->rest.at[at]])
            here = added_at(e, at);
        if (here.cut && end == END_OPEN) {
            if (here.token && end_section(e, at, err)) // one of the two begins here in any case
                return err->code;
            break;
        }
        if (here.token && add_token(e, here.token, at, err))
            return err->code;
        at += here.token ? here.token->n : 1;
    }
    size_t n = at - e->at;
    if (end == END_OPEN && p->tokenizer->nfc)
        n = nfc_certain(p->tokenizer->nfc, (struct text_view){ buf_str(&p->rest) + e->at, n });
    if (add_to_section(e, n, end, err))
        return err->code;
    drop_done(p, e->at, at);
    return 0;
}

/* Adds to *out the ids of the prompt's text that are certain and that it did not give before. The tail begins `tail`
 * bytes before its end. */
static int encode(struct prompt_ids *p, size_t tail, enum text_end end, struct tokens *out, struct err *err)
{
    if (buf_failed(&p->rest) || buf_failed(&p->section))
        return err_nomem(err);
    struct encoding e = { .p = p, .out = out, .tail = p->rest.n - tail };
    for (int i = 0; i < p->tokenizer->added.n; i++)
        e.first[(unsigned char)p->tokenizer->added.at[i].text[0]] = true;
    int code = encode_rest(&e, end, err);
    bpe_work_release(&e.work);
    return code;
}

int tokenizer_encode(const struct tokenizer *t, struct text_view text, enum special special, struct tokens *out,
                     struct err *err)
{
    struct prompt_ids p = { .tokenizer = t };

    utf8_clean(&p.rest, text.at, text.n);
    p.head = special == SPECIAL_PARSED ? p.rest.n : 0;
    int code = encode(&p, 0, END_CLOSED, out, err);
    prompt_ids_release(&p);
    return code;
}

/* ---- prompts ----------------------------------------------------------- */

void prompt_ids_release(struct prompt_ids *p)
{
    tokens_release(&p->ids);
    buf_release(&p->section);
    buf_release(&p->rest);
    *p = (struct prompt_ids){ 0 };
}

struct tokens prompt_ids_take(struct prompt_ids *p)
{
    struct tokens ids = p->ids;

    p->ids = (struct tokens){ 0 };
    prompt_ids_release(p);
    return ids;
}

void prompt_ids_cut(struct prompt_ids *context, int n)
{
    assert(n <= context->ids.n);
    context->ids.n = n;
    buf_clear(&context->section);
    buf_clear(&context->rest);
    context->mark = (struct split_mark){ 0 };
    context->searched = context->head = 0;
}

/* The same text in another prompt, which has no ids yet. */
static struct prompt_ids go_on(const struct prompt_ids *from)
{
    struct prompt_ids p = { .tokenizer = from->tokenizer,
                            .after = from->after,
                            .mark = from->mark,
                            .searched = from->searched,
                            .head = from->head };

    buf_add(&p.section, buf_str(&from->section), from->section.n);
    buf_add(&p.rest, buf_str(&from->rest), from->rest.n);
    return p;
}

int tokenizer_context(const struct tokenizer *t, const char *text, struct prompt_ids *p, struct err *err)
{
    *p = (struct prompt_ids){ .tokenizer = t, .head = strlen(t->chat.head) };
    buf_adds(&p->rest, t->chat.head);
    utf8_clean(&p->rest, text, strlen(text));
    if (encode(p, 0, END_OPEN, &p->ids, err)) {
        prompt_ids_release(p);
        return err->code;
    }
    return 0;
}

int tokenizer_ask(const struct prompt_ids *context, const char *ask, struct prompt_ids *p, struct err *err)
{
    static const char mark[] = "{question}";
    const char *at = strstr(ask, mark);

    if (!at)
        return err_set(err, ERR_FORMAT, "'%.64s' does not contain {question}", ask);
    *p = go_on(context);
    p->after = at + sizeof(mark) - 1;
    utf8_clean(&p->rest, ask, (size_t)(at - ask));
    if (encode(p, 0, END_OPEN, &p->ids, err)) {
        prompt_ids_release(p);
        return err->code;
    }
    return 0;
}

static int add_all(struct tokens *out, const struct tokens *ids, struct err *err)
{
    for (int i = 0; i < ids->n; i++)
        if (tokens_add(out, ids->at[i], err))
            return err->code;
    return 0;
}

int tokenizer_question(const struct prompt_ids *asked, const char *question, struct tokens *out, struct err *err)
{
    const char *tail = asked->tokenizer->chat.tail;
    struct prompt_ids whole = go_on(asked);

    utf8_clean(&whole.rest, question, strlen(question));
    utf8_clean(&whole.rest, asked->after, strlen(asked->after));
    buf_adds(&whole.rest, tail);
    int code = add_all(out, &asked->ids, err);
    if (!code)
        code = encode(&whole, strlen(tail), END_CLOSED, out, err);
    prompt_ids_release(&whole);
    return code;
}
