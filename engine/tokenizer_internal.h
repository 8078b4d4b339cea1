/* tokenizer_internal.h - what a tokenizer consists of, for the files of engine/ that make one. Everybody else:
 * engine/tokenizer.h.
 */
#ifndef EVP_TOKENIZER_INTERNAL_H
#define EVP_TOKENIZER_INTERNAL_H

#include "base/json.h"
#include "engine/bpe.h"
#include "engine/chat.h"
#include "engine/gguf.h"
#include "engine/split.h"
#include "engine/tokenizer.h"

/* A token that is found in the text before anything else is done to it. */
struct added_token {
    char *text;
    size_t n;
    int32_t id;
    bool special; // only where the caller says so, and never decoded
};

enum { TOKEN_SPECIAL = 1, TOKEN_STOPS = 2 };

struct tokenizer {
    struct bpe bpe;
    struct splitter splitter;
    bool nfc; // normalise to NFC first
    struct added_token *added;
    int n_added, room_added;
    uint8_t *flags; // (bpe.n_vocab): TOKEN_*
    char *bos;      // the text of the first token, NULL: none
    bool bos_first; // it stands before every text, also without a chat template
    struct chat chat;
};

/* From the keys of a GGUF file; from the parsed tokenizer.json (without chat template, BOS and end-of-text ids, which
 * stand in other files of the folder). `t` is zeroed; ids at or above n_vocab, the model's, are
 * refused. */
int tokenizer_from_gguf(struct tokenizer *t, const struct gguf *g, int n_vocab, struct err *err) MUST_CHECK;
int tokenizer_from_json(struct tokenizer *t, const struct json *root, int n_vocab, struct err *err) MUST_CHECK;
/* The whole folder. */
int tokenizer_from_folder(struct tokenizer *t, const char *dir, int n_vocab, struct err *err) MUST_CHECK;

/* For these: after bpe_init. */
int tokenizer_alloc(struct tokenizer *t, int n_vocab, int n_merges, struct err *err) MUST_CHECK;
int tokenizer_add_special(struct tokenizer *t, const char *text, size_t n, int32_t id, bool special,
                          struct err *err) MUST_CHECK;
void tokenizer_set_stop(struct tokenizer *t, int64_t id); // out of range: ignored
/* Named stops, head and tail; jinja NULL: there is no template. */
int tokenizer_complete(struct tokenizer *t, const char *jinja, size_t n, struct err *err) MUST_CHECK;
void tokenizer_release(struct tokenizer *t);

/* The split patterns of pre-tokenizers by their GGUF name. */
extern const char SPLIT_DIGITS[], SPLIT_GPT2[], SPLIT_LLAMA3[], SPLIT_QWEN2[];

#endif
