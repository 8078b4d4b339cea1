/* tiktoken.c - a tokenizer from a tiktoken file: a line for each token, its bytes in base64, a blank and its rank.
 *
 * Ids are ranks, and two neighbours are merged when together they are a token. The file has neither the split pattern
 * nor the special tokens; the number of its tokens tells the family, which has both.
 * Sources: https://github.com/openai/tiktoken, https://github.com/meta-llama/llama-models,
 * https://huggingface.co/Qwen/Qwen-7B.
 */
#include "engine/tokens/tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const llama3_special[] = {
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|image|>",
    NULL,
};
static const char *const qwen_special[] = { "<|endoftext|>", "<|im_start|>", "<|im_end|>", NULL };

static const struct tiktoken_family {
    int n_ranks;
    const char *name, *pattern;
    bool nfc;
    const char *const *special; // from id n_ranks on; then `more`, numbered from `more_first`, up to n_special
    const char *more;           // "<|extra_" for "<|extra_0|>"
    int more_first, n_special;
    const char *bos;
} families[] = {
    { 128000, "Llama 3", SPLIT_LLAMA3, false, llama3_special, "<|reserved_special_token_", 2, 256,
      "<|begin_of_text|>" },
    { 151643, "Qwen", SPLIT_QWEN2, true, qwen_special, "<|extra_", 0, 208, NULL },
};

/* ---- lines ------------------------------------------------------------- */

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Adds the decoded bytes of a text in base64; false if it is not base64. */
static bool base64_decode(struct buf *out, struct text_view text)
{
    unsigned bits = 0, n_bits = 0;
    size_t n = text.n;

    if (n == 0 || n % 4)
        return false;
    for (int padded = 0; padded < 2 && text.at[n - 1] == '='; padded++)
        n--;
    for (size_t i = 0; i < n; i++) {
        int digit = base64_digit(text.at[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (unsigned)digit;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            buf_addc(out, (char)(bits >> n_bits & 0xff));
        }
    }
    return true;
}

/* Takes the text up to `stop`, and skips `stop`. */
static struct text_view take(struct text_view *rest, char stop)
{
    const char *end = memchr(rest->at, stop, rest->n);
    size_t n = end ? (size_t)(end - rest->at) : rest->n;
    struct text_view taken = { rest->at, n };

    rest->at += n + (end != NULL);
    rest->n -= n + (end != NULL);
    return taken;
}

/* A number of at most nine digits; -1: not such a number. */
static int32_t number_of(struct text_view text)
{
    int32_t value = 0;

    if (text.n == 0 || text.n > 9)
        return -1;
    for (size_t i = 0; i < text.n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return -1;
        value = value * 10 + (text.at[i] - '0');
    }
    return value;
}

static int read_line(struct tokenizer *t, struct text_view line, int number, struct buf *bytes, struct err *err)
{
    struct text_view left = line, text = take(&left, ' ');
    int32_t rank = number_of(left);

    buf_clear(bytes);
    if (rank < 0 || !base64_decode(bytes, text))
        return err_set(err, ERR_FORMAT, "line %d is not a token in base64 and its rank", number);
    if (buf_failed(bytes))
        return err_nomem(err);
    return bpe_set_token(&t->bpe, rank, (struct text_view){ buf_str(bytes), bytes->n }, err);
}

/* The merges of tokens 0 .. n - 1. */
static int join(struct tokenizer *t, int n, struct err *err)
{
    uint32_t *rank = malloc(((size_t)t->bpe.n_vocab + 1) * sizeof(*rank));

    if (!rank)
        return err_nomem(err);
    for (int id = 0; id < t->bpe.n_vocab; id++)
        rank[id] = id < n && t->bpe.token[id].set ? (uint32_t)id : BPE_APART;
    int code = bpe_join_tokens(&t->bpe, rank, err);
    free(rank);
    return code;
}

int tiktoken_lines(struct tokenizer *t, struct text_view file, struct err *err)
{
    struct buf bytes = { 0 };
    int code = 0, n = 0;

    for (int number = 1; file.n > 0 && !code; number++) {
        struct text_view line = take(&file, '\n');
        if (line.n > 0)
            code = read_line(t, line, number, &bytes, err);
        n += line.n > 0;
    }
    buf_release(&bytes);
    if (code || bpe_finish(&t->bpe, err))
        return err->code;
    return join(t, n, err);
}

/* ---- the whole --------------------------------------------------------- */

/* A file of n tokens has the ranks 0 .. n - 1: ids are set once, and each is below n. */
static const struct tiktoken_family *find_family(struct text_view file, struct err *err)
{
    int n = 0;

    while (file.n > 0)
        n += take(&file, '\n').n > 0;
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (families[i].n_ranks == n)
            return &families[i];
    err_set(err, ERR_FORMAT, "a tiktoken file of %d tokens is not of a known family (Llama 3 has 128000, Qwen 151643)",
            n);
    return NULL;
}

static int add_special(struct tokenizer *t, const struct tiktoken_family *f, struct err *err)
{
    char name[64];
    int n = 0;

    for (int i = 0; i < f->n_special && f->n_ranks + i < t->bpe.n_vocab; i++) {
        if (f->special[n])
            snprintf(name, sizeof(name), "%s", f->special[n++]);
        else
            snprintf(name, sizeof(name), "%s%d|>", f->more, f->more_first + i - n);
        const struct text_view text = text_view_of(name);
        if (bpe_set_token(&t->bpe, f->n_ranks + i, text, err) ||
            tokenizer_add_token(t, text, f->n_ranks + i, ADDED_SPECIAL, err))
            return err->code;
    }
    return 0;
}

int tokenizer_from_tiktoken(struct tokenizer *t, struct text_view file, int n_vocab, struct err *err)
{
    const struct tiktoken_family *f = find_family(file, err);

    if (!f)
        return err->code;
    if (f->n_ranks > n_vocab)
        return err_set(err, ERR_FORMAT, "%d tokens are more than the model's %d", f->n_ranks, n_vocab);
    if (tokenizer_alloc(t, BPE_BYTES, n_vocab, err) || tiktoken_lines(t, file, err) ||
        splitter_add(&t->splitter, f->pattern, err) || add_special(t, f, err))
        return err->code;
    t->bpe.whole_word_first = true;
    t->nfc = f->nfc ? nfc_new(err) : NULL;
    if (f->nfc && !t->nfc)
        return err->code;
    t->bos = f->bos ? strdup(f->bos) : NULL;
    t->bos_first = f->bos != NULL;
    return f->bos && !t->bos ? err_nomem(err) : 0;
}
