/* tokenizer.h - text to ids and back: byte-level BPE (GPT-2's scheme: SmolLM2, Llama 3, Qwen).
 *
 * From GGUF metadata or tokenizer.json. Splitting is the model's own regular expression, run by PCRE2; merging is by
 * rank. Special tokens are found only where the caller says so: text that merely looks like <|im_end|> is data.
 */
#ifndef EVP_TOKENIZER_H
#define EVP_TOKENIZER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/tokens.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;
struct tokenizer;

enum special { SPECIAL_AS_TEXT, SPECIAL_PARSED };

struct tokenizer *tokenizer_open(const struct model *m, struct err *err);
void tokenizer_free(struct tokenizer *t);

/* Adds the ids of n bytes of UTF-8 to *out; no BOS. Malformed UTF-8 is cleaned to U+FFFD first. Thread-safe. */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, enum special special, struct tokens *out,
                     struct err *err) MUST_CHECK;

/* Adds the text of ids; special tokens are left out; bytes that are not UTF-8 become U+FFFD. Ids out of range fail. */
int tokenizer_decode(const struct tokenizer *t, const int32_t *ids, int n, struct buf *out, struct err *err) MUST_CHECK;

/* Does generation end here? The model's end-of-text ids and any of <|endoftext|> <|im_end|> <|eot_id|> <|end_of_text|>
 * </s> that the vocabulary has as special tokens. */
bool tokenizer_stops(const struct tokenizer *t, int32_t id);

/* The two halves of the chat template around one user message, with special tokens in them. Without a template the tail
 * is "", and the head the first token's text where the model wants one before every text. Borrowed. */
const char *tokenizer_head(const struct tokenizer *t);
const char *tokenizer_tail(const struct tokenizer *t);

int tokenizer_n_vocab(const struct tokenizer *t);

/* What the model sees: a context is head + text (head parsed, text as data), with `BOS` first where the template has
 * it; a question is `ask` with {question} replaced, as data, then tail (parsed). */
int tokenizer_context(const struct tokenizer *t, const char *text, struct tokens *out, struct err *err) MUST_CHECK;
int tokenizer_question(const struct tokenizer *t, const char *ask, const char *question, struct tokens *out,
                       struct err *err) MUST_CHECK;

#endif
