/* prompt_ids.c - text to ids, and how many of them are certain when more text will follow.
 *
 * Text is cleaned to UTF-8 and cut at added tokens into sections. Each section is normalised, split by the model's
 * patterns and merged piece by piece. When the end is open, each stage stops where more text could change its result:
 * the search for added tokens where the text ends within one, the normal form before the last character that can join
 * with others, the splitter as in engine/tokens/split.h. A struct prompt_ids holds these three positions, so a question
 * is tokenised from there on, whatever the length of its context.
 */
#include "base/utf8.h"
#include "engine/tokens/tokenizer_internal.h"
#include "formats/context.h"

#include <assert.h>
#include <string.h>

/* The state of one encoding that continues a prompt. */
struct encoding {
    struct prompt_ids *p;
    struct bpe_work work;
    struct tokens *out;
    size_t tail;     // where the tail begins in the rest
    size_t at;       // bytes of the rest that are in the section already
    bool first[256]; // bytes that an added token may begin with
};

/* The length of the blank at the beginning of a text; 0: it begins otherwise. */
static size_t blank_at(const struct tokenizer *t, struct text_view text)
{
    static const char mark[] = TEXT_BLANK;

    if (text.n > 0 && text.at[0] == ' ')
        return 1;
    return t->blanks && text.n >= sizeof(mark) - 1 && memcmp(text.at, mark, sizeof(mark) - 1) == 0 ? sizeof(mark) - 1
                                                                                                   : 0;
}

static int encode_piece(void *arg, struct text_view piece, struct err *err)
{
    struct encoding *e = arg;

    return bpe_encode(&e->p->tokenizer->bpe, &e->work, piece, e->out, err);
}

static int encode_open_piece(void *arg, struct text_view piece, size_t *done, struct err *err)
{
    struct encoding *e = arg;
    struct bpe_open open = { .text = piece };
    int code = bpe_encode_open(&e->p->tokenizer->bpe, &e->work, &open, e->out, err);

    *done = open.done;
    return code;
}

/* Does the tokenizer put a blank at the beginning of the section (unless its text begins with one)? */
static bool has_prefix(const struct prompt_ids *p)
{
    const enum prefix prefix = p->tokenizer->prefix;

    if (p->begin == SECTION_GOES_ON || prefix == PREFIX_NONE)
        return false;
    return p->begin == SECTION_TEXT || prefix == PREFIX_SECTION ||
           (p->begin == SECTION_AFTER_SPECIAL && prefix == PREFIX_AFTER_SPECIAL);
}

/* Adds text to the section, normalised for splitting and merging. */
static int normalise(struct prompt_ids *p, struct text_view more, struct err *err)
{
    const struct tokenizer *t = p->tokenizer;

    if (t->nfc)
        return nfc_add(&p->section, more, err);
    if (p->section.n == 0 && has_prefix(p) && !(t->prefix_unless_blank && blank_at(t, more)))
        buf_addc(&p->section, ' ');
    if (t->blanks)
        text_view_blanks(&p->section, more);
    else
        buf_add(&p->section, more.at, more.n);
    return buf_failed(&p->section) ? err_nomem(err) : 0;
}

/* Moves n bytes of the rest to the section, and adds the ids that are now certain. */
static int add_to_section(struct encoding *e, size_t n, enum text_end end, struct err *err)
{
    struct prompt_ids *p = e->p;

    if (n > 0 && normalise(p, (struct text_view){ buf_str(&p->rest) + e->at, n }, err))
        return err->code;
    e->at += n;
    const struct split_job job = {
        .text = { buf_str(&p->section), p->section.n },
        .end = end,
        .mark = &p->mark,
        .each = encode_piece,
        .open = encode_open_piece,
        .arg = e,
    };
    return splitter_run(&p->tokenizer->splitter, &job, err);
}

/* The added tokens that begin at one position of the rest: the longest whole one, and whether the end cuts another. */
struct added_here {
    const struct added_token *token;
    bool cut;
};

/* The beginning of the white space that ends at `at`, not counting what is in the section already. */
static size_t space_before(const struct encoding *e, size_t at)
{
    const char *rest = buf_str(&e->p->rest);

    for (size_t i = at; i-- > e->at;) {
        uint32_t point;
        if (((unsigned char)rest[i] & 0xc0) == 0x80)
            continue;
        if (utf8_decode(rest + i, at - i, &point) == 0 || !utf8_is_space(point))
            break;
        at = i;
    }
    return at;
}

/* Is there a blank before this position, or would the tokenizer put one there? */
static bool blank_before(const struct encoding *e, size_t at)
{
    const char *rest = buf_str(&e->p->rest);

    if (at == e->at)
        return e->p->section.n == 0 && has_prefix(e->p);
    return rest[at - 1] == ' ' || (at - e->at >= 3 && memcmp(rest + at - 3, TEXT_BLANK, 3) == 0);
}

/* Special tokens count only if all their bytes are in the head, or all are in the tail. */
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
        if (a->text[0] != text[0] || (a->space & ADDED_WANTS_BLANK && !blank_before(e, at)))
            continue;
        if (a->n <= n && memcmp(a->text, text, a->n) == 0 && (!here.token || a->n > here.token->n))
            here.token = a;
        else if (a->kind == ADDED_PLAIN && a->n > left && memcmp(a->text, text, left) == 0)
            here.cut = true;
    }
    return here;
}

/* Ends the section before byte `at` of the rest; the next one is empty. */
static int end_section(struct encoding *e, size_t at, struct err *err)
{
    if (add_to_section(e, at - e->at, END_CLOSED, err))
        return err->code;
    buf_clear(&e->p->section);
    e->p->mark = (struct split_mark){ 0 };
    return 0;
}

/* The added token before e->at takes the white space there; the section begins after it. */
static void skip_space(struct encoding *e)
{
    const struct buf *rest = &e->p->rest;

    while (e->at < rest->n) {
        uint32_t point;
        int n = utf8_decode(rest->at + e->at, rest->n - e->at, &point);
        if (n == 0 || !utf8_is_space(point))
            break;
        e->at += (size_t)n;
    }
    e->p->skip = e->at == rest->n;
}

static int add_token(struct encoding *e, const struct added_token *a, size_t at, struct err *err)
{
    struct prompt_ids *p = e->p;
    size_t end = at;

    if (a->space & ADDED_TAKES_BEFORE)
        end = space_before(e, at);
    else if (a->space & ADDED_WANTS_BLANK && at > e->at)
        end = at - (buf_str(&p->rest)[at - 1] == ' ' ? 1 : 3);
    if (end_section(e, end, err))
        return err->code;
    e->at = at + a->n;
    p->begin = a->space & ADDED_WANTS_BLANK ? SECTION_GOES_ON
               : a->kind == ADDED_SPECIAL   ? SECTION_AFTER_SPECIAL
                                            : SECTION_AFTER_PLAIN;
    if (a->space & ADDED_TAKES_AFTER)
        skip_space(e);
    return tokens_add(e->out, a->id, err);
}

/* Puts the blank of a section's beginning into the rest, at the position of the search: an added token may begin with
 * it. */
static int put_prefix(struct encoding *e, struct err *err)
{
    struct buf *rest = &e->p->rest;

    buf_addc(rest, ' ');
    if (buf_failed(rest))
        return err_nomem(err);
    memmove(rest->at + e->at + 1, rest->at + e->at, rest->n - 1 - e->at);
    rest->at[e->at] = ' ';
    e->p->head += e->at < e->p->head;
    e->tail++;
    e->p->begin = SECTION_GOES_ON;
    return 0;
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

/* Adds text to the rest, in UTF-8. */
static void add_text(struct prompt_ids *p, const char *text, size_t n)
{
    struct buf clean = { 0 };

    if (!p->tokenizer->blanks_first) {
        utf8_clean(&p->rest, text, n);
        return;
    }
    utf8_clean(&clean, text, n);
    if (clean.n > 0)
        text_view_blanks(&p->rest, (struct text_view){ clean.at, clean.n });
    p->rest.failed |= buf_failed(&clean);
    buf_release(&clean);
}

static int encode_rest(struct encoding *e, enum text_end end, struct err *err)
{
    struct prompt_ids *p = e->p;
    if (p->skip)
        skip_space(e);
    size_t at = p->searched > e->at ? p->searched : e->at;

    while (at < p->rest.n) {
        struct added_here here = { NULL, false };
        if (e->first[(unsigned char)p->rest.at[at]])
            here = added_at(e, at);
        if (p->tokenizer->blanks_first && at == e->at && p->section.n == 0 && has_prefix(p) &&
            !(here.token && here.token->kind == ADDED_SPECIAL)) {
            if (put_prefix(e, err))
                return err->code;
            continue;
        }
        if (here.cut && end == END_OPEN) {
            if (here.token && !p->tokenizer->added.space && end_section(e, at, err)) // one of the two begins here
                return err->code;
            break;
        }
        if (here.token && add_token(e, here.token, at, err))
            return err->code;
        at = here.token ? e->at : at + 1;
    }
    size_t n = at - e->at;
    if (end == END_OPEN && p->tokenizer->added.space & (ADDED_TAKES_BEFORE | ADDED_WANTS_BLANK))
        n = space_before(e, at) - e->at;
    if (end == END_OPEN && p->tokenizer->nfc)
        n = nfc_certain(p->tokenizer->nfc, (struct text_view){ buf_str(&p->rest) + e->at, n });
    if (add_to_section(e, n, end, err))
        return err->code;
    drop_done(p, e->at, at);
    return 0;
}

/* Characters that Jinja's trim and Python's str.strip() remove. */
static bool is_trimmed(uint32_t point)
{
    return utf8_is_space(point) || (point >= 0x1c && point <= 0x1f);
}

/* Where the white space at the end of the message begins, in the rest. */
static size_t message_end(const struct prompt_ids *p)
{
    size_t end = p->rest.n;

    for (size_t i = end; i-- > p->head;) {
        uint32_t point;
        if (((unsigned char)p->rest.at[i] & 0xc0) == 0x80)
            continue;
        if (utf8_decode(p->rest.at + i, end - i, &point) == 0 || !is_trimmed(point))
            break;
        end = i;
    }
    return end;
}

/* Adds text of the message to the rest. */
static void add_message(struct prompt_ids *p, const char *text, size_t n)
{
    size_t start = p->rest.n, skip = 0;

    add_text(p, text, n);
    if (!p->trim_begin || buf_failed(&p->rest))
        return;
    while (start + skip < p->rest.n) {
        uint32_t point;
        int length = utf8_decode(p->rest.at + start + skip, p->rest.n - start - skip, &point);
        p->trim_begin = is_trimmed(point);
        if (!p->trim_begin)
            break;
        skip += (size_t)length;
    }
    p->rest.n -= skip;
    memmove(p->rest.at + start, p->rest.at + start + skip, p->rest.n - start);
}

/* Adds to *out the certain ids of the prompt's text that were not given before. The last `tail` bytes are the
 * template's. */
static int encode_all(struct prompt_ids *p, size_t tail, enum text_end end, struct tokens *out, struct err *err)
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

/* The same, but holds back white space at the end that is left out if the message ends there. */
static int encode(struct prompt_ids *p, size_t tail, enum text_end end, struct tokens *out, struct err *err)
{
    struct buf space = { 0 };

    if (end == END_OPEN && p->trims && p->rest.n > 0) {
        size_t keep = message_end(p);
        buf_add(&space, p->rest.at + keep, p->rest.n - keep);
        p->rest.n = keep;
    }
    int code = encode_all(p, tail, end, out, err);
    buf_add(&p->rest, buf_str(&space), space.n);
    if (!code && (buf_failed(&space) || buf_failed(&p->rest)))
        code = err_nomem(err);
    buf_release(&space);
    return code;
}

int tokenizer_encode(const struct tokenizer *t, struct text_view text, enum special special, struct tokens *out,
                     struct err *err)
{
    struct prompt_ids p = { .tokenizer = t };

    add_text(&p, text.at, text.n);
    p.head = special == SPECIAL_PARSED ? p.rest.n : 0;
    int code = encode_all(&p, 0, END_CLOSED, out, err);
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
    context->begin = SECTION_GOES_ON;
    context->skip = context->trim_begin = false;
}

/* A copy of the prompt's state, with no ids yet. */
static struct prompt_ids go_on(const struct prompt_ids *from)
{
    struct prompt_ids p = { .tokenizer = from->tokenizer,
                            .after = from->after,
                            .tail = from->tail,
                            .open = from->open,
                            .trims = from->trims,
                            .begin = from->begin,
                            .skip = from->skip,
                            .mark = from->mark,
                            .searched = from->searched,
                            .head = from->head,
                            .trim_begin = from->trim_begin };

    buf_add(&p.section, buf_str(&from->section), from->section.n);
    buf_add(&p.rest, buf_str(&from->rest), from->rest.n);
    return p;
}

int tokenizer_context(const struct tokenizer *t, const char *text, struct prompt_ids *p, struct err *err)
{
    if (tokenizer_renders(t, err))
        return err->code;
    *p = (struct prompt_ids){ .tokenizer = t,
                              .tail = t->chat.tail,
                              .head = strlen(t->chat.head),
                              .trims = t->chat.trims,
                              .trim_begin = t->chat.trims };
    buf_adds(&p->rest, t->chat.head);
    add_message(p, text, strlen(text));
    if (encode(p, 0, END_OPEN, &p->ids, err)) {
        prompt_ids_release(p);
        return err->code;
    }
    return 0;
}

/* ---- conversations ------------------------------------------------------ */

/* Ends the message, adds the template's text between it and the next one, and begins that. */
static int add_marks(struct prompt_ids *p, const char *close, const char *open, struct err *err)
{
    size_t before = p->rest.n;

    if (p->trims && p->rest.n > p->head)
        before = p->rest.n = message_end(p);
    buf_adds(&p->rest, close);
    buf_adds(&p->rest, open);
    if (encode_all(p, p->rest.n - before, END_OPEN, &p->ids, err))
        return err->code;
    p->head = p->rest.n;
    p->trim_begin = p->trims;
    return 0;
}

/* The marks of a role; NULL and ERR_FORMAT: the template has none. */
static const struct chat_marks *marks_of(const struct chat *chat, enum turn_role role, struct err *err)
{
    const struct chat_marks *m = role == TURN_SYSTEM ? &chat->system
                                 : role == TURN_USER ? &chat->user
                                                     : &chat->assistant;

    if (chat->no_turns)
        err_set(err, ERR_FORMAT, "%s, but the context has turns", chat->no_turns);
    else if (!m->open)
        err_set(err, ERR_FORMAT, "the chat template takes no %s turn", turn_role_name(role));
    return !chat->no_turns && m->open ? m : NULL;
}

static int add_conversation(struct prompt_ids *p, const struct context *c, struct err *err)
{
    const struct chat *chat = &p->tokenizer->chat;
    const struct turn *first = c->turns.at;
    const char *text = c->text, *close = "";

    /* the head ends with the opening of a user turn */
    size_t n_open = chat->user.open ? strlen(chat->user.open) : 0;
    size_t n_head = first->role == TURN_SYSTEM ? 0 : strlen(chat->head) - n_open;
    buf_add(&p->rest, chat->head, n_head);
    buf_adds(&p->rest, first->role == TURN_SYSTEM ? chat->first : "");
    p->head = p->rest.n;
    for (int i = 0; i < c->turns.n; i++) {
        const struct chat_marks *m = marks_of(chat, first[i].role, err);
        if (!m || add_marks(p, close, m->open, err))
            return err->code;
        add_message(p, text, first[i].n);
        text += first[i].n;
        close = m->close;
    }
    enum turn_role role = first[c->turns.n - 1].role;
    p->open = role == TURN_SYSTEM ? OPEN_SYSTEM : role == TURN_USER ? OPEN_USER : OPEN_ASSISTANT;
    return 0;
}

/* A prompt without a chat template. All of it may hold special tokens. */
static void add_prompt(struct prompt_ids *p, const char *text)
{
    const struct tokenizer *t = p->tokenizer;

    p->tail = "";
    p->open = OPEN_PROMPT;
    p->trims = p->trim_begin = false;
    if (t->bos && t->bos_first && strncmp(text, t->bos, strlen(t->bos)) != 0)
        buf_adds(&p->rest, t->bos);
    add_text(p, text, strlen(text));
    p->head = p->rest.n;
}

int tokenizer_context_row(const struct tokenizer *t, const struct context *c, struct prompt_ids *p, struct err *err)
{
    /* a single user message works with every template */
    if (c->turns.n == 0 || (c->turns.n == 1 && c->turns.at[0].role == TURN_USER))
        return tokenizer_context(t, c->text, p, err);
    bool raw = c->turns.at[0].role == TURN_PROMPT;
    if (!raw && (tokenizer_renders(t, err) || !marks_of(&t->chat, TURN_USER, err)))
        return err->code;
    *p = (struct prompt_ids){ .tokenizer = t, .tail = t->chat.tail, .trims = t->chat.trims };
    if (raw)
        add_prompt(p, c->text);
    int code = raw ? 0 : add_conversation(p, c, err);
    if (!code)
        code = encode(p, 0, END_OPEN, &p->ids, err);
    if (code)
        prompt_ids_release(p);
    return code;
}

/* Text of a question; in a prompt without a chat template it may hold special tokens. */
static void add_asked(struct prompt_ids *p, const char *text, size_t n)
{
    add_message(p, text, n);
    if (p->open == OPEN_PROMPT)
        p->head = p->rest.n;
}

/* Continues with a user turn. */
static int open_user(struct prompt_ids *p, struct err *err)
{
    const struct chat *chat = &p->tokenizer->chat;
    const struct chat_marks *m = p->open == OPEN_SYSTEM ? &chat->system : &chat->assistant;

    if (p->open == OPEN_USER || p->open == OPEN_PROMPT)
        return 0;
    p->open = OPEN_USER;
    return add_marks(p, m->close, chat->user.open, err);
}

int tokenizer_ask(const struct prompt_ids *context, const char *ask, struct prompt_ids *p, struct err *err)
{
    static const char mark[] = "{question}";
    const char *at = strstr(ask, mark);

    if (!at)
        return err_set(err, ERR_FORMAT, "'%.64s' does not contain {question}", ask);
    *p = go_on(context);
    p->after = at + sizeof(mark) - 1;
    int code = open_user(p, err);
    add_asked(p, ask, (size_t)(at - ask));
    if (code || encode(p, 0, END_OPEN, &p->ids, err)) {
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
    static const char mark[] = "{reply}";
    const char *reply = strstr(asked->after, mark);
    struct prompt_ids whole = go_on(asked);

    add_asked(&whole, question, strlen(question));
    add_asked(&whole, asked->after, reply ? (size_t)(reply - asked->after) : strlen(asked->after));
    if (asked->trims && whole.rest.n > 0)
        whole.rest.n = message_end(&whole);
    size_t message = whole.rest.n;
    buf_adds(&whole.rest, asked->tail);
    if (reply)
        add_text(&whole, reply + sizeof(mark) - 1, strlen(reply) - sizeof(mark) + 1);
    int code = add_all(out, &asked->ids, err);
    if (!code)
        code = encode_all(&whole, whole.rest.n - message, END_CLOSED, out, err);
    prompt_ids_release(&whole);
    return code;
}
