/* split_patterns.c - the split patterns of pre-tokenizers by the names that GGUF files give them instead of a pattern.
 *
 * Sources: the models' own tokenizer.json; for "default" llama.cpp, which alone has it.
 */
#include "engine/tokens/tokenizer_internal.h"

#include <string.h>

#define CONTRACTION  "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINES_BLANKS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define APART        "[^\\r\\n\\p{L}\\p{N}]?"

const char SPLIT_DIGITS[] = "\\p{N}";
const char SPLIT_GPT2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char SPLIT_LLAMA3[] = CONTRACTION "|" APART "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" LINES_BLANKS;
const char SPLIT_QWEN2[] = CONTRACTION "|" APART "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" LINES_BLANKS;
static const char SPLIT_TEKKEN[] =
    APART UPPER "*" LOWER "+|" APART UPPER "+" LOWER "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINES_BLANKS;
static const char SPLIT_GPT4O[] = APART UPPER "*" LOWER "+" CONTRACTION "?|" APART UPPER "+" LOWER "*" CONTRACTION
                                              "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINES_BLANKS;

/* Names with a blank after each, as llama.cpp lists them for a pattern. */
static const struct {
    const char *names, *pattern[4];
    bool nfc, whole_word_first;
} known[] = {
    { "smollm starcoder refact codeshell exaone minerva-7b mellum2 ", { SPLIT_DIGITS, SPLIT_GPT2 }, false, false },
    { "command-r ", { SPLIT_DIGITS, SPLIT_GPT2 }, true, false },
    { "gpt-2 phi-2 mpt olmo jais trillion exaone4 gigachat a.x-4.0 mellum granite-docling jina-es jina-de jina-v2-es "
      "jina-v2-de jina-v1-en jina-v2-code ",
      { SPLIT_GPT2 },
      false,
      false },
    { "default ", { "[\\p{P}\\$\\+<=>\\^~\\|]+", SPLIT_GPT2, "\\p{N}+", "[0-9][0-9][0-9]" }, false, false },
    { "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 ", { SPLIT_LLAMA3 }, false, true },
    { "dbrx smaug-bpe glm4 chatglm-bpe ", { SPLIT_LLAMA3 }, false, false },
    { "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez ", { SPLIT_QWEN2 }, true, false },
    { "stablelm2 hunyuan solar-open grok-2 ", { SPLIT_QWEN2 }, false, false },
    { "tekken ", { SPLIT_TEKKEN }, false, true },
    { "gpt-4o llama4 kanana2 talkie minimax-m2 ", { SPLIT_GPT4O }, false, false },
};

/* Is the name in the list? */
static bool has_name(const char *names, struct text_view name)
{
    for (const char *at = names; *at; at += strcspn(at, " ") + 1)
        if (name.n == strcspn(at, " ") && memcmp(at, name.at, name.n) == 0)
            return true;
    return false;
}

int tokenizer_split_as(struct tokenizer *t, struct text_view name, struct err *err)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (!has_name(known[i].names, name))
            continue;
        t->nfc = known[i].nfc ? nfc_new(err) : NULL;
        if (known[i].nfc && !t->nfc)
            return err->code;
        t->bpe.whole_word_first = known[i].whole_word_first;
        for (int k = 0; k < 4 && known[i].pattern[k]; k++)
            if (splitter_add(&t->splitter, known[i].pattern[k], err))
                return err->code;
        return 0;
    }
    return err_set(err, ERR_FORMAT, "pre-tokenizer '%.*s' is not supported", text_view_width(name, 64), name.at);
}
