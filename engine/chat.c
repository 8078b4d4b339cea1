/* chat.c - the table of families, and how a row's marks are filled in. The first row whose word a template contains
 * counts, so rows with a special word come before rows with a general one.
 */
#include "engine/chat.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct family {
    const char *word; // what templates of this family contain
    const char *head, *tail;
};

#define CHATML_TAIL "<|im_end|>\n<|im_start|>assistant\n"
#define LLAMA3_TURN "<|start_header_id|>user<|end_header_id|>\n\n"
#define LLAMA3_TAIL "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"

static const struct family families[] = {
    /* thinking is switched off, as an empty thought */
    { "enable_thinking", "<|im_start|>user\n", CHATML_TAIL "<think>\n\n</think>\n\n" },
    { "<|im_start|>", "{system}<|im_start|>user\n", CHATML_TAIL }, /* SmolLM2, Qwen2, Qwen2.5 and many more */
    /* without a date Llama 3.1 writes this one; 3.2 and 3.3 would write today's, and the ids would differ every day */
    { "Cutting Knowledge Date",
      "{bos}<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
      "Today Date: 26 Jul 2024\n\n<|eot_id|>" LLAMA3_TURN,
      LLAMA3_TAIL },
    { "<|start_header_id|>", "{bos}" LLAMA3_TURN, LLAMA3_TAIL },
    { " [/INST]", "{bos}[INST] ", " [/INST]" }, /* Llama 2, Mistral v0.1 and v0.2 */
    { "[/INST]", "{bos}[INST] ", "[/INST]" },   /* Mistral v0.3 */
    { "A chat between a curious user",
      "{bos}A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
      "detailed, and polite answers to the user's questions. USER: ",
      " ASSISTANT:" },
};

/* ChatML templates write a system turn of their own where the user gave none: a literal after <|im_start|>system and a
 * line end, which may be a real one or written as \n. Anything else that follows is code. n = 0: there is none. */
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

/* Adds a half with its marks replaced. */
static int fill(struct buf *out, const char *half, struct text_view jinja, const char *bos, struct err *err)
{
    static const char bos_mark[] = "{bos}", system_mark[] = "{system}";

    if (strncmp(half, bos_mark, sizeof(bos_mark) - 1) == 0) {
        buf_adds(out, bos);
        half += sizeof(bos_mark) - 1;
    } else if (strncmp(half, system_mark, sizeof(system_mark) - 1) == 0) {
        struct text_view system = default_system(jinja);
        if (memchr(system.at, '\\', system.n) || memchr(system.at, '\'', system.n) || memchr(system.at, '{', system.n))
            return err_set(err, ERR_FORMAT, "the system turn of its chat template is not plain text");
        if (system.n)
            buf_printf(out, "<|im_start|>system\n%.*s<|im_end|>\n", (int)system.n, system.at);
        half += sizeof(system_mark) - 1;
    }
    buf_adds(out, half);
    return buf_failed(out) ? err_nomem(err) : 0;
}

int chat_find(struct chat *c, struct text_view jinja, const char *bos, struct err *err)
{
    const struct family *f = families, *end = families + sizeof(families) / sizeof(*families);
    struct buf head = { 0 }, tail = { 0 };

    *c = (struct chat){ 0 };
    while (f < end && !memmem(jinja.at, jinja.n, f->word, strlen(f->word)))
        f++;
    if (f == end)
        return err_set(err, ERR_FORMAT, "its chat template belongs to no known family");
    int code = fill(&head, f->head, jinja, bos, err);
    if (!code)
        code = fill(&tail, f->tail, jinja, bos, err);
    c->head = buf_take(&head);
    c->tail = buf_take(&tail);
    if (!code && c->head && c->tail)
        return 0;
    chat_release(c);
    return code ? code : err_nomem(err);
}

void chat_release(struct chat *c)
{
    free(c->head);
    free(c->tail);
    *c = (struct chat){ 0 };
}
