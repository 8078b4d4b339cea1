/* tokenizer_internal.h - what a tokenizer consists of, for the files of engine/ that make one. Other folders:
 * engine/tokenizer.h.
 */
#ifndef EVP_TOKENIZER_INTERNAL_H
#define EVP_TOKENIZER_INTERNAL_H

#include "base/json.h"
#include "engine/bpe.h"
#include "engine/chat.h"
#include "engine/gguf.h"
#include "engine/nfc.h"
#include "engine/split.h"
#include "engine/tokenizer.h"

/* A special token is found only where the caller says so, and is never decoded. */
enum added_kind { ADDED_PLAIN, ADDED_SPECIAL };

/* A token that is found in the text before it is split. */
struct added_token {
    char *text; // n bytes
    size_t n;
    int32_t id;
    enum added_kind kind;
};

enum { TOKEN_SPECIAL = 1, TOKEN_STOPS = 2 };

struct tokenizer {
    struct bpe bpe;
    struct splitter splitter;
    struct nfc *nfc; // normalise to NFC first; NULL: do not
    struct {
        struct added_token *at;
        int n, cap;
    } added;
    uint8_t *flags; // (bpe.n_vocab): TOKEN_*
    char *bos;      // the text of the first token, NULL: none
    bool bos_first; // every text begins with it, also without a chat template
    struct chat chat;
};

/* From the keys of a GGUF file, and from the parsed tokenizer.json (without chat template, BOS and end-of-text ids,
 * which are in other files of the folder). `t` is zeroed; n_vocab is the model's, and ids at or above it are refused.
 * On failure the caller releases *t. */
int tokenizer_from_gguf(struct tokenizer *t, const struct gguf *g, int n_vocab, struct err *err) MUST_CHECK;
int tokenizer_from_json(struct tokenizer *t, const struct json *root, int n_vocab, struct err *err) MUST_CHECK;
/* The whole folder. */
int tokenizer_from_folder(struct tokenizer *t, const char *dir, int n_vocab, struct err *err) MUST_CHECK;

/* For the functions above. */
int tokenizer_alloc(struct tokenizer *t, int n_vocab, int n_merges, struct err *err) MUST_CHECK;
int tokenizer_add_token(struct tokenizer *t, struct text_view text, int32_t id, enum added_kind kind,
                        struct err *err) MUST_CHECK;
void tokenizer_set_stop(struct tokenizer *t, int64_t id); // out of range: ignored
/* Sets the named stops, head and tail; jinja.at NULL: there is no template. */
int tokenizer_complete(struct tokenizer *t, struct text_view jinja, struct err *err) MUST_CHECK;
void tokenizer_release(struct tokenizer *t);

/* The split patterns of pre-tokenizers by their GGUF name. */
extern const char SPLIT_DIGITS[], SPLIT_GPT2[], SPLIT_LLAMA3[], SPLIT_QWEN2[];

#endif
