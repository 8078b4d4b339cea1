/* tokenizer.h - text to ids and back: byte-level BPE (GPT-2's scheme: SmolLM2, Llama 3, Qwen) and SentencePiece's BPE
 * (Llama 2, Mistral, Gemma).
 *
 * From GGUF metadata, tokenizer.json, SentencePiece's tokenizer.model or a tiktoken file. Splitting follows the model's
 * own regular expression, run by PCRE2; merging is by rank. Special tokens are found only where the caller says so:
 * text that looks like <|im_end|> is data.
 *
 * A prompt is tokenised as one string. Its context is the ids that stay the same whatever follows the text; see struct
 * prompt_ids.
 *
 * To read another pre-tokenizer: (1) its row in engine/tokens/split_patterns.c and its type in engine/tokens/tokenizer_json.c (2) its
 * pieces in tests/unit/tokenizer.c, its kind in tests/unit/prompt_ids.c (3) its ids in tests/golden/tokenizer.
 */
#ifndef EVP_TOKENIZER_H
#define EVP_TOKENIZER_H

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/tokens.h"
#include "engine/model/text_view.h"
#include "engine/tokens/split.h"

#include <stdbool.h>
#include <stdint.h>

struct context;
struct model;
struct tokenizer;

enum special { SPECIAL_AS_TEXT, SPECIAL_PARSED };

/* The tokenizer of a model, which may be closed afterwards. NULL with ERR_FORMAT for a kind that is not supported. */
struct tokenizer *tokenizer_open(const struct model *m, struct err *err);

/* The same for making prompts: by the file `chat_template`, a text with {content} (chat_parse() in engine/tokens/chat.h);
 * "none": a text is all of its prompt; NULL: by the model's own template, and ERR_FORMAT when that is not known. */
struct tokenizer *tokenizer_open_chat(const struct model *m, const char *chat_template, struct err *err);
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

/* ---- prompts ---- */

/* SHA-256 hex over both halves of the chat template. Prompts with the same are made alike. A template
 * that is not known has the digest of none. */
int tokenizer_chat_digest(const struct tokenizer *t, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;

/* A prompt is what a server sends to the model as one string: head, text, `ask` with {question} replaced, tail. Head
 * and tail are the halves of the chat template around one user message; special tokens are parsed in them alone.
 * Without a template the tail is "", and the head is the text of the first token where the model wants one before every
 * text.
 *
 *     struct prompt_ids context, asked;
 *     tokenizer_context(t, text, &context, &err);            // context.ids: the context
 *     tokenizer_ask(&context, ask, &asked, &err);            // asked.ids: how all its questions begin
 *     tokenizer_question(&asked, question, &ids, &err);      // one question, with asked.ids
 *
 * The ids of a context and then those of a question are the ids of the whole prompt. A token may join the end of one
 * part with the beginning of the next. So the context is the ids that stay the same whatever follows the text: those of
 * all pieces that the pre-tokenizer cuts off without looking at the end of the text, and of a piece that can only
 * become longer those that no continuation changes (engine/tokens/bpe.h). They depend on head and text alone; there may be
 * none. The rest of the text belongs to the questions. In the same way asked.ids depend on head, text and the part of
 * `ask` before {question} alone. */
enum section { SECTION_TEXT, SECTION_AFTER_SPECIAL, SECTION_AFTER_PLAIN, SECTION_GOES_ON }; // where one begins

struct prompt_ids {
    struct tokens ids; // certain ones; of `asked`: those after the context's
    /* for engine/tokens/prompt_ids.c: how to go on */
    const struct tokenizer *tokenizer;
    const char *after; // the part of `ask` after {question}; borrowed
    const char *tail;  // what ends the prompt; the tokenizer's
    enum open_turn { OPEN_USER, OPEN_SYSTEM, OPEN_ASSISTANT, OPEN_PROMPT } open; // what the text ends in
    enum section begin;                                                          // how the section began
    bool skip;              // white space at its beginning belongs to the added token before it
    struct buf section;     // the text since the last added token, normalised, as far as that is certain
    struct split_mark mark; // as far as its ids are certain
    struct buf rest;        // the text that follows it
    size_t searched;        // of the rest: bytes where no added token begins
    size_t head;            // of the rest: bytes that are the head's
    bool trims;             // white space at both ends of a message is left out
    bool trim_begin;        // white space at the beginning of the message is left out, and nothing else came yet
};
void prompt_ids_release(struct prompt_ids *p); // zeroed is fine

/* The ids of a prompt, for the caller; releases all else. */
struct tokens prompt_ids_take(struct prompt_ids *p);

/* Fill *p; on failure nothing is left to release. `context` may be released before *p, `ask` may not. Malformed UTF-8
 * in a text, in a question and in each half of `ask` becomes U+FFFD first. White space at the ends of text, ask and
 * question together is left out where the chat template does so. Thread-safe. ERR_FORMAT when `ask` does not
 * contain {question}, and when the model's own chat template is not known. */
int tokenizer_context(const struct tokenizer *t, const char *text, struct prompt_ids *p, struct err *err) MUST_CHECK;
int tokenizer_ask(const struct prompt_ids *context, const char *ask, struct prompt_ids *p, struct err *err) MUST_CHECK;

/* The same for a row: one with turns (formats/context.h) is the conversation as the chat template writes it, up to where
 * its last turn is open. A last turn that is not the user's is closed before `ask`, which then begins a turn of the
 * user. In the one turn `prompt`, and in what follows it, special tokens are parsed; the first token is put before it
 * where the model wants one and it does not begin with that. ERR_FORMAT when the template is not known for such turns.
 */
int tokenizer_context_row(const struct tokenizer *t, const struct context *c, struct prompt_ids *p,
                          struct err *err) MUST_CHECK;

/* Adds the ids of a question to *out: those of `asked`, then the rest. */
int tokenizer_question(const struct prompt_ids *asked, const char *question, struct tokens *out,
                       struct err *err) MUST_CHECK;

/* Cuts a context to its first n ids, n at most as many as it has. What follows them is no part of one text any more:
 * questions are encoded apart. */
void prompt_ids_cut(struct prompt_ids *context, int n);

#endif
