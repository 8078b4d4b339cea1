/* tokenizer.h - text to ids and back: byte-level BPE (GPT-2's scheme: SmolLM2, Llama 3, Qwen).
 *
 * From GGUF metadata or tokenizer.json. Splitting follows the model's own regular expression, run by PCRE2; merging is
 * by rank. Special tokens are found only where the caller says so: text that looks like <|im_end|> is data.
 *
 * To read another pre-tokenizer: (1) its row in read_splitter() of engine/tokenizer_gguf.c, its pattern declared in
 * engine/tokenizer_internal.h, and its type in engine/tokenizer_json.c (2) its pieces in tests/unit/tokenizer.c (3) its
 * ids in tests/golden/tokenizer.
 */
#ifndef EVP_TOKENIZER_H
#define EVP_TOKENIZER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/tokens.h"
#include "engine/text_view.h"

#include <stdbool.h>
#include <stdint.h>

struct model;
struct tokenizer;

enum special { SPECIAL_AS_TEXT, SPECIAL_PARSED };

/* The tokenizer of a model, which may be closed afterwards. NULL with ERR_FORMAT for a kind that is not supported. */
struct tokenizer *tokenizer_open(const struct model *m, struct err *err);
void tokenizer_free(struct tokenizer *t); // NULL is fine

/* Adds the ids of a text to *out, without BOS. Malformed UTF-8 becomes U+FFFD first. Thread-safe. */
int tokenizer_encode(const struct tokenizer *t, struct text_view text, enum special special, struct tokens *out,
                     struct err *err) MUST_CHECK;

/* Adds the text of n ids to *out. Special tokens are left out; bytes that are not UTF-8 become U+FFFD. ERR_FORMAT for
 * an id that is out of range. */
int tokenizer_decode(const struct tokenizer *t, const int32_t *ids, int n, struct buf *out, struct err *err) MUST_CHECK;

/* Does generation end here? The model's end-of-text ids and any of <|endoftext|> <|im_end|> <|eot_id|> <|end_of_text|>
 * </s> that the vocabulary has as special tokens. */
bool tokenizer_stops(const struct tokenizer *t, int32_t id);

/* What the model sees. Head and tail are the halves of the chat template around one user message; their special tokens
 * are parsed. A context is head, then the text as data. A question is `ask` with {question} replaced, as data, then
 * tail. Without a template the tail is "", and the head is the text of the first token where the model wants one before
 * every text. ERR_FORMAT when `ask` does not contain {question}. */
int tokenizer_context(const struct tokenizer *t, const char *text, struct tokens *out, struct err *err) MUST_CHECK;
int tokenizer_question(const struct tokenizer *t, const char *ask, const char *question, struct tokens *out,
                       struct err *err) MUST_CHECK;

#endif
