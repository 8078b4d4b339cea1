/* split_patterns.c - the split patterns of pre-tokenizers by the names that GGUF files give them instead of a pattern.
 *
 * Sources: the models' own tokenizer.json; for "default" llama.cpp, which alone has it.
 */
#include "engine/tokens/tokenizer_internal.h"

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

static const struct {
    const char *name, *pattern[4];
    bool nfc, whole_word_first;
} known[] = {
    { "smollm", { SPLIT_DIGITS, SPLIT_GPT2 }, false, false },
    { "gpt-2", { SPLIT_GPT2 }, false, false },
    { "default", { "[\\p{P}\\$\\+<=>\\^~\\|]+", SPLIT_GPT2, "\\p{N}+", "[0-9][0-9][0-9]" }, false, false },
    { "llama-bpe", { SPLIT_LLAMA3 }, false, true },
    { "llama3", { SPLIT_LLAMA3 }, false, true },
    { "qwen2", { SPLIT_QWEN2 }, true, false },
    { "tekken", { SPLIT_TEKKEN }, false, true },
    { "gpt-4o", { SPLIT_GPT4O }, false, false },
};

int tokenizer_split_as(struct tokenizer *t, struct text_view name, struct err *err)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (!text_view_is(name, known[i].name))
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
