/* chat.c - the table of families, and filling in a row's marks. {bos} at the start of a half stands for the text of the
 * model's first token if the template writes it, {system} for the template's own system turn if it has one.
 *
 * A template belongs to the first row with words that it contains, so rows with special words precede general ones.
 */
#include "engine/tokens/chat.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The text of a family around each message of a conversation. */
struct turns {
    struct chat_marks system, user, assistant;
    const char *first; // before a system turn that comes first
};

struct family {
    const char *words[2];      // every template of this family contains all of them
    const char *head, *tail;   // NULL: a template that is known not to be of any other family
    const struct turns *turns; // NULL: unknown
};

#define CHATML_TURN    "<|im_start|>user\n"
#define CHATML_TAIL    "<|im_end|>\n<|im_start|>assistant\n"
#define LLAMA3_TURN    "<|start_header_id|>user<|end_header_id|>\n\n"
#define LLAMA3_MESSAGE "message['content'] | trim + '<|eot_id|>'"
#define LLAMA3_TAIL    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"

static const struct turns chatml = { { "<|im_start|>system\n", "<|im_end|>\n" },
                                     { "<|im_start|>user\n", "<|im_end|>\n" },
                                     { "<|im_start|>assistant\n", "<|im_end|>\n" },
                                     "{bos}" };
static const struct turns phi4 = { { "<|im_start|>system<|im_sep|>", "<|im_end|>" },
                                   { "<|im_start|>user<|im_sep|>", "<|im_end|>" },
                                   { "<|im_start|>assistant<|im_sep|>", "<|im_end|>" },
                                   "" };
#define LLAMA3_USER                                                                                                    \
    {                                                                                                                  \
        LLAMA3_TURN, "<|eot_id|>"                                                                                      \
    }
#define LLAMA3_ASSISTANT                                                                                               \
    {                                                                                                                  \
        "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"                                              \
    }
#define DATE_MARK "Today Date: "
#define LLAMA31_SYSTEM                                                                                                 \
    "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n" DATE_MARK "26 Jul 2024\n\n"
static const struct turns llama31 = { { LLAMA31_SYSTEM, "<|eot_id|>" }, LLAMA3_USER, LLAMA3_ASSISTANT, "{bos}" };
static const struct turns llama3 = {
    { "<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>" }, LLAMA3_USER, LLAMA3_ASSISTANT, "{bos}"
};
/* Gemma 3 writes the system turn into the first user message, Gemma 2 refuses it. */
static const struct turns gemma = { { NULL, NULL },
                                    { "<start_of_turn>user\n", "<end_of_turn>\n" },
                                    { "<start_of_turn>model\n", "<end_of_turn>\n" },
                                    "{bos}" };
static const struct turns phi4_mini = {
    { "<|system|>", "<|end|>" }, { "<|user|>", "<|end|>" }, { "<|assistant|>", "<|end|>" }, "{bos}"
};
static const struct turns phi3 = {
    { "<|system|>\n", "<|end|>\n" }, { "<|user|>\n", "<|end|>\n" }, { "<|assistant|>\n", "<|end|>\n" }, "{bos}"
};

static const struct family families[] = {
    /* Phi-4 */
    { { "<|im_sep|>", "<|im_start|>" },
      "<|im_start|>user<|im_sep|>",
      "<|im_end|><|im_start|>assistant<|im_sep|>",
      &phi4 },
    /* Qwen3: thinking is switched off by an empty thought */
    { { "enable_thinking is defined and enable_thinking is false", "'<|im_start|>assistant\\n' }}" },
      "{bos}" CHATML_TURN,
      CHATML_TAIL "<think>\n\n</think>\n\n",
      &chatml },
    { { "enable_thinking", "<|im_start|>" }, NULL, NULL, NULL },
    /* Qwen3-Thinking-2507, QwQ */
    { { "<|im_start|>assistant\\n<think>\\n", NULL }, "{bos}{system}" CHATML_TURN, CHATML_TAIL "<think>\n", &chatml },
    { { "<|im_start|>", "You are a function calling AI model." }, NULL, NULL, NULL },
    /* SmolLM2, Qwen2, Qwen2.5, Qwen3-Instruct-2507 and many more */
    { { "<|im_start|>", NULL }, "{bos}{system}" CHATML_TURN, CHATML_TAIL, &chatml },
    /* Llama 3.1 to 3.3; servers write today's date with 3.2's */
    { { "{{- \"Cutting Knowledge Date: December 2023\\n\" }}", LLAMA3_MESSAGE },
      "{bos}" LLAMA31_SYSTEM "<|eot_id|>" LLAMA3_TURN,
      LLAMA3_TAIL,
      &llama31 },
    { { "Cutting Knowledge Date", "<|start_header_id|>" }, NULL, NULL, NULL },
    { { "{% for message in loop_messages %}", LLAMA3_MESSAGE }, "{bos}" LLAMA3_TURN, LLAMA3_TAIL, &llama3 },
    { { "[INST]", "[SYSTEM_PROMPT]" }, NULL, NULL, NULL },
    { { "[INST]", "true == true" }, NULL, NULL, NULL },  // Llama 2 with a system turn of the template's own
    { { "[INST]", "messages[idx]" }, NULL, NULL, NULL }, // Llama 2 without the first [INST]
    /* Mistral 7B v0.1 and v0.2 as published later */
    { { "\" [INST] \"", "\" [/INST]\"" }, "{bos} [INST] ", " [/INST]", NULL },
    { { "' [INST] '", "' [/INST]'" }, "{bos} [INST] ", " [/INST]", NULL },
    /* Llama 2; Mistral 7B v0.1 and v0.2 as published at first */
    { { "[INST] ", " [/INST]" }, "{bos}[INST] ", " [/INST]", NULL },
    /* Mistral 7B v0.3 */
    { { "[INST] ", "[/INST]" }, "{bos}[INST] ", "[/INST]", NULL },
    /* Mistral NeMo */
    { { "[INST]", "[/INST]" }, "{bos}[INST]", "[/INST]", NULL },
    /* Gemma 2 and 3 */
    { { "<start_of_turn>", "<end_of_turn>" },
      "{bos}<start_of_turn>user\n",
      "<end_of_turn>\n<start_of_turn>model\n",
      &gemma },
    /* Phi-4-mini, then Phi-3 and Phi-3.5 */
    { { "<|assistant|>", "<|tool|>" }, "{bos}<|user|>", "<|end|><|assistant|>", &phi4_mini },
    { { "<|assistant|>", "<|end|>" }, "{bos}<|user|>\n", "<|end|>\n<|assistant|>\n", &phi3 },
    /* Vicuna, LongChat */
    { { "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
        "detailed, "
        "and polite answers to the user",
        "ASSISTANT:" },
      "{bos}A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
      "detailed, and polite answers to the user's questions. USER: ",
      " ASSISTANT:",
      NULL },
};

static bool contains(struct text_view text, const char *word)
{
    return memmem(text.at, text.n, word, strlen(word)) != NULL;
}

/* Does the template remove the white space at both ends of a message? */
static bool trims(struct text_view jinja)
{
    static const char *const words[] = { "message['content'] | trim", "message['content']|trim",
                                         "message[\"content\"] | trim", "content.strip()",
                                         "message['content'].strip()" };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (contains(jinja, words[i]))
            return true;
    return false;
}

/* ChatML templates write a system turn of their own if the user gave none: a literal after <|im_start|>system and a
 * line end, which may be a real one or written as \n. Anything else there is code. n = 0: no such turn. */
static struct text_view default_system(struct text_view jinja)
{
    static const char begin[] = "<|im_start|>system", finish[] = "<|im_end|>";
    const char *end = jinja.at + jinja.n, *at = jinja.at;

    while ((at = memmem(at, (size_t)(end - at), begin, sizeof(begin) - 1))) {
        at += sizeof(begin) - 1;
        if (end - at >= 2 && memcmp(at, "\\n", 2) == 0)
            at += 2;
        else if (at < end && *at == '\n')
            at++;
        const char *stop = memmem(at, (size_t)(end - at), finish, sizeof(finish) - 1);
        if (stop && isalpha((unsigned char)*at))
            return (struct text_view){ at, (size_t)(stop - at) };
    }
    return (struct text_view){ "", 0 };
}

/* Skips a mark at the beginning of a half; false if the half does not begin with it. */
static bool take_mark(const char **half, const char *mark)
{
    size_t n = strlen(mark);
    bool there = strncmp(*half, mark, n) == 0;

    *half += there ? n : 0;
    return there;
}

/* Adds a half with its marks replaced. */
static int fill(struct buf *out, const char *half, struct text_view jinja, const char *bos, struct err *err)
{
    if (take_mark(&half, "{bos}") && contains(jinja, "bos_token"))
        buf_adds(out, bos);
    if (take_mark(&half, "{system}")) {
        struct text_view system = default_system(jinja);
        if (memchr(system.at, '\\', system.n) || memchr(system.at, '\'', system.n) || memchr(system.at, '{', system.n))
            return err_set(err, ERR_FORMAT, "the system turn of its chat template is not plain text");
        if (system.n)
            buf_printf(out, "<|im_start|>system\n%.*s<|im_end|>\n", (int)system.n, system.at);
    }
    buf_adds(out, half);
    return buf_failed(out) ? err_nomem(err) : 0;
}

static const struct family *find_family(struct text_view jinja)
{
    const struct family *end = families + sizeof(families) / sizeof(*families);

    for (const struct family *f = families; f < end; f++)
        if (contains(jinja, f->words[0]) && (!f->words[1] || contains(jinja, f->words[1])))
            return f->head ? f : NULL;
    return NULL;
}

/* Sets the text around the messages of a conversation. Some templates of a family take no system turn: a template that
 * takes one contains the word, or writes any role as given. */
static int find_turns(struct chat *c, const struct family *f, struct text_view jinja, const char *bos, struct err *err)
{
    struct buf first = { 0 };
    int code = 0;

    if (f->turns) {
        code = fill(&first, f->turns->first, jinja, bos, err);
        bool any_role = contains(jinja, "system") || contains(jinja, "+ message['role'] +");
        c->system = any_role ? f->turns->system : (struct chat_marks){ NULL, NULL };
        c->user = f->turns->user;
        c->assistant = f->turns->assistant;
    } else {
        c->no_turns = "this chat template is supported for a single user message only";
    }
    c->first = buf_take(&first);
    return code;
}

int chat_find(struct chat *c, struct text_view jinja, const char *bos, struct err *err)
{
    const struct family *f = find_family(jinja);
    struct buf head = { 0 }, tail = { 0 };

    *c = (struct chat){ .trims = trims(jinja), .today = contains(jinja, "strftime_now") };
    if (!f)
        return err_set(err, ERR_FORMAT, "its chat template is not of a known family");
    int code = fill(&head, f->head, jinja, bos, err);
    if (!code)
        code = fill(&tail, f->tail, jinja, bos, err);
    if (!code)
        code = find_turns(c, f, jinja, bos, err);
    c->head = buf_take(&head);
    c->tail = buf_take(&tail);
    if (!code && c->head && c->tail && c->first)
        return 0;
    chat_release(c);
    return code ? code : err_nomem(err);
}

const char *chat_date(const char *option)
{
    return take_mark(&option, "date:") ? option : NULL;
}

int chat_set_date(struct chat *c, const char *date, struct err *err)
{
    struct buf head = { 0 };
    bool dated = c->system.open && strstr(c->system.open, DATE_MARK);
    const char *at = dated ? strstr(c->head + strlen(c->first), DATE_MARK) : NULL;

    if (!at || !utf8_valid(date, strlen(date)))
        return err_set(err, ERR_FORMAT, at ? "the date is not UTF-8" : "its chat template writes no date");
    at += strlen(DATE_MARK);
    buf_add(&head, c->head, (size_t)(at - c->head));
    buf_adds(&head, date);
    buf_adds(&head, at + strcspn(at, "\n"));
    free(c->head);
    free(c->system_open);
    c->head = buf_take(&head);
    /* such a head is `first`, an empty system turn and the opening of the user's */
    at = c->head ? c->head + strlen(c->first) : "";
    c->system.open = c->system_open = strndup(at, strlen(at) - strlen(c->system.close) - strlen(c->user.open));
    c->today = false;
    return c->head && c->system_open ? 0 : err_nomem(err);
}

int chat_parse(struct chat *c, struct text_view text, struct err *err)
{
    static const char mark[] = "{content}";
    const char *at = memmem(text.at, text.n, mark, sizeof(mark) - 1), *after = at ? at + sizeof(mark) - 1 : NULL;
    size_t left = at ? (size_t)(text.at + text.n - after) : 0;

    *c = (struct chat){ 0 };
    if (!utf8_valid(text.at, text.n) || memchr(text.at, '\0', text.n))
        return err_set(err, ERR_FORMAT, "a chat template is not UTF-8 text");
    if (!at || memmem(after, left, mark, sizeof(mark) - 1))
        return err_set(err, ERR_FORMAT, "a chat template contains {content} once; this one %s",
                       at ? "contains it again" : "does not");
    c->head = strndup(text.at, (size_t)(at - text.at));
    c->tail = strndup(after, left);
    c->first = strdup("");
    c->no_turns = "a custom chat template takes a single user message only";
    if (c->head && c->tail && c->first)
        return 0;
    chat_release(c);
    return err_nomem(err);
}

void chat_release(struct chat *c)
{
    free(c->head);
    free(c->tail);
    free(c->first);
    free(c->system_open);
    *c = (struct chat){ 0 };
}
