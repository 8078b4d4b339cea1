/* tokenizer_internal.h - struct tokenizer, for the files of engine/ that make one. Other folders:
 * engine/tokens/tokenizer.h.
 */
#ifndef EVP_TOKENIZER_INTERNAL_H
#define EVP_TOKENIZER_INTERNAL_H

#include "base/json.h"
#include "engine/model/gguf.h"
#include "engine/tokens/bpe.h"
#include "engine/tokens/chat.h"
#include "engine/tokens/nfc.h"
#include "engine/tokens/split.h"
#include "engine/tokens/tokenizer.h"

/* A special token is found only where the caller says so, and is never decoded. */
enum added_kind { ADDED_PLAIN, ADDED_SPECIAL };

/* Which white space beside it an added token takes. */
enum added_space {
    ADDED_TAKES_BEFORE = 1, // "lstrip"
    ADDED_TAKES_AFTER = 2,  // "rstrip"
    ADDED_WANTS_BLANK = 4,  // "normalized", where normalising puts a blank before every text: found only after a blank
};

/* A token that is found in the text before it is split. */
struct added_token {
    char *text; // n bytes
    size_t n;
    int32_t id;
    enum added_kind kind;
    unsigned space; // enum added_space
};

/* Where SentencePiece's tokenizers put a blank. A section is the text between two added tokens. */
enum prefix {
    PREFIX_NONE,
    PREFIX_TEXT,          // at the beginning of a text
    PREFIX_SECTION,       // at the beginning of every section
    PREFIX_AFTER_SPECIAL, // at the beginning of a text and after special tokens
};

enum { TOKEN_SPECIAL = 1, TOKEN_STOPS = 2 };

struct tokenizer {
    struct bpe bpe;
    struct splitter splitter;
    struct nfc *nfc; // normalise to NFC first; NULL: do not
    bool blanks;     // U+2581 in a text is a blank
    enum prefix prefix;
    bool prefix_unless_blank; // not before a text that begins with a blank
    bool blanks_first;        // U+2581 becomes a blank, and prefixes are put, before the search for added tokens
    bool strip_blank;         // a decoded text loses its first blank
    struct {
        struct added_token *at;
        int n, cap;
        unsigned space; // of all
    } added;
    uint8_t *flags; // (bpe.n_vocab): TOKEN_*
    char *bos;      // the text of the first token, NULL: none
    bool bos_first; // every text begins with it, also without a chat template
    struct chat chat;
    char *no_chat; // why `chat` is empty: prompts cannot be made; NULL: they can
};

/* From the keys of a GGUF file, and from the parsed tokenizer.json (without chat template, BOS and end-of-text ids,
 * which are in other files of the folder). `t` is zeroed; n_vocab is the model's, and ids at or above it are refused.
 * On failure the caller releases *t. */
int tokenizer_from_gguf(struct tokenizer *t, const struct gguf *g, int n_vocab, struct err *err) MUST_CHECK;
int tokenizer_from_json(struct tokenizer *t, const struct json *root, int n_vocab, struct err *err) MUST_CHECK;
/* A token for every byte, for a model without a tokenizer of its own. */
int tokenizer_of_bytes(struct tokenizer *t, int n_vocab, struct err *err) MUST_CHECK;
/* From the bytes of SentencePiece's tokenizer.model or of a tiktoken file, also without chat template. */
int tokenizer_from_sentencepiece(struct tokenizer *t, struct text_view file, int n_vocab, struct err *err) MUST_CHECK;
int tokenizer_from_tiktoken(struct tokenizer *t, struct text_view file, int n_vocab, struct err *err) MUST_CHECK;
int tiktoken_lines(struct tokenizer *t, struct text_view file,
                   struct err *err) MUST_CHECK; // its tokens and merges alone
/* The whole folder. */
int tokenizer_from_folder(struct tokenizer *t, const char *dir, int n_vocab, struct err *err) MUST_CHECK;

/* For the functions above. */
int tokenizer_alloc(struct tokenizer *t, enum bpe_kind kind, int n_vocab, struct err *err) MUST_CHECK;
int tokenizer_add_token(struct tokenizer *t, struct text_view text, int32_t id, enum added_kind kind,
                        struct err *err) MUST_CHECK;
void tokenizer_take_space(struct tokenizer *t, unsigned space); // enum added_space, of the token that was added last
/* An added token as Hugging Face's files describe it; one that has no id in the vocabulary gets this one. */
int tokenizer_add_json(struct tokenizer *t, int64_t id, const struct json *v, struct err *err) MUST_CHECK;
int tokenizer_merged(struct tokenizer *t, struct err *err) MUST_CHECK; // after split patterns and merges
void tokenizer_set_stop(struct tokenizer *t, int64_t id);              // out of range: ignored
/* Sets the named stops, head and tail; jinja.at NULL: no template. An unknown template is not a failure yet. */
int tokenizer_complete(struct tokenizer *t, struct text_view jinja, struct err *err) MUST_CHECK;
/* Takes another chat template, or none, as tokenizer_open_chat() does. */
int tokenizer_render(struct tokenizer *t, const char *chat_template, struct err *err) MUST_CHECK;
int tokenizer_renders(const struct tokenizer *t, struct err *err) MUST_CHECK; // ERR_FORMAT: prompts cannot be made
void tokenizer_release(struct tokenizer *t);

/* The split patterns of known pre-tokenizers. tokenizer_split_as() applies a GGUF file's name of one. */
extern const char SPLIT_DIGITS[], SPLIT_GPT2[], SPLIT_LLAMA3[], SPLIT_QWEN2[];
int tokenizer_split_as(struct tokenizer *t, struct text_view name, struct err *err) MUST_CHECK;

#endif
