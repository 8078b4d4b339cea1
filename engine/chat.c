#include "engine/chat.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

struct family {
    const char *word; // a template that holds it is of this family; the first row that matches counts
    const char *head, *tail;
};

#define CHATML_TAIL "<|im_end|>\n<|im_start|>assistant\n"
#define LLAMA3_TURN "<|start_header_id|>user<|end_header_id|>\n\n"
#define LLAMA3_TAIL "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"

static const struct family families[] = {
    { "named SmolLM, trained by Hugging Face",
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
      "<|im_start|>user\n",
      CHATML_TAIL },
    { "You are Qwen, created by Alibaba Cloud",
      "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
      "<|im_start|>user\n",
      CHATML_TAIL },
    { "system\\nYou are a helpful assistant.<|im_end|>",
      "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n", CHATML_TAIL },
    /* thinking is switched off, as an empty thought */
    { "enable_thinking", "<|im_start|>user\n", CHATML_TAIL "<think>\n\n</think>\n\n" },
    { "<|im_start|>", "<|im_start|>user\n", CHATML_TAIL },
    /* Llama 3.1 writes this date when it is told none; 3.2 and 3.3 would write today's, and other ids every day */
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

static char *with_bos(const char *half, const char *bos)
{
    static const char mark[] = "{bos}";
    struct buf text = { 0 };

    if (strncmp(half, mark, sizeof(mark) - 1) == 0) {
        buf_adds(&text, bos);
        half += sizeof(mark) - 1;
    }
    buf_adds(&text, half);
    return buf_take(&text);
}

int chat_find(struct chat *c, const char *jinja, size_t n, const char *bos, struct err *err)
{
    *c = (struct chat){ 0 };
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        if (!memmem(jinja, n, families[i].word, strlen(families[i].word)))
            continue;
        c->head = with_bos(families[i].head, bos);
        c->tail = with_bos(families[i].tail, bos);
        return c->head && c->tail ? 0 : err_nomem(err);
    }
    return err_set(err, ERR_FORMAT, "its chat template is of no known family");
}

void chat_release(struct chat *c)
{
    free(c->head);
    free(c->tail);
    *c = (struct chat){ 0 };
}
