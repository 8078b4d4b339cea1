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
 * To read another pre-tokenizer: (1) its row in engine/tokens/split_patterns.c and its type in
 * engine/tokens/tokenizer_json.c (2) its pieces in tests/unit/tokenizer.c, its kind in tests/unit/prompt_ids.c (3) its
 * ids in tests/golden/tokenizer.
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

/* The same for making prompts. chat_template: a file with a text that contains {content} (chat_parse() in
 * engine/tokens/chat.h); "none": a text is the whole prompt; NULL: the model's own template, ERR_FORMAT if it is
 * unknown; "date:26 Jul 2024": the same with that date, ERR_FORMAT if it writes none. */
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

/* The chat template around one user message: the text after it, "" without a known template; and how many of a prompt's
 * n first ids are those of the text before it. */
const char *tokenizer_tail(const struct tokenizer *t);
bool tokenizer_writes_today(const struct tokenizer *t); // do servers write the day's date with it?
int tokenizer_head(const struct tokenizer *t, const int32_t *ids, int n, int *n_head, struct err *err) MUST_CHECK;

/* SHA-256 hex over both halves of the chat template: equal digests, equal prompts. An unknown template has the digest
 * of an empty text. */
int tokenizer_chat_digest(const struct tokenizer *t, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;

/* A prompt is the string that a server sends to the model: head, text, `ask` with {question} replaced, tail. Head
 * and tail are the halves of the chat template around one user message; special tokens are parsed in them alone.
 * Without a template the tail is "", and the head is the text of the first token where the model wants one before every
 * text. What follows {reply} in `ask` is not in the message but after the tail, as the beginning of the model's reply;
 * special tokens are parsed in it.
 *
 *     struct prompt_ids context, asked;
 *     tokenizer_context(t, text, &context, &err);            // context.ids: the context
 *     tokenizer_ask(&context, ask, &asked, &err);            // asked.ids: how all its questions begin
 *     tokenizer_question(&asked, question, &ids, &err);      // one question, with asked.ids
 *
 * The ids of a context followed by the ids of a question are the ids of the whole prompt. But a token may span the
 * border between text and `ask`. So the context is only the ids that stay the same whatever follows the text: the ids
 * of all pieces that the pre-tokenizer cuts off without looking at the end of the text and, in a last piece that can
 * only grow, the ids that no continuation changes (engine/tokens/bpe.h). They depend on head and text alone; there may
 * be none. The rest of the text belongs to the questions. Likewise asked.ids depend only on head, text and the
 * beginning of `ask` up to {question}. */
enum section { SECTION_TEXT, SECTION_AFTER_SPECIAL, SECTION_AFTER_PLAIN, SECTION_GOES_ON }; // where one begins

struct prompt_ids {
    struct tokens ids; // certain ones; of `asked`: only those after the context's
    /* for engine/tokens/prompt_ids.c: how to continue */
    const struct tokenizer *tokenizer;
    const char *after; // the rest of `ask` after {question}; borrowed
    const char *tail;  // the end of the prompt; the tokenizer's
    enum open_turn { OPEN_USER, OPEN_SYSTEM, OPEN_ASSISTANT, OPEN_PROMPT } open; // the turn at the end of the text
    enum section begin;                                                          // how the section began
    bool skip;              // white space at its beginning belongs to the added token before it
    struct buf section;     // the text since the last added token, normalised, as far as that is certain
    struct split_mark mark; // up to here its ids are certain
    struct buf rest;        // the text after the section
    size_t searched;        // bytes of the rest where no added token begins
    size_t head;            // bytes of the rest that belong to the head
    bool trims;             // white space at both ends of a message is left out
    bool trim_begin;        // the message is empty so far, and white space at its beginning is left out
};
void prompt_ids_release(struct prompt_ids *p); // zeroed is fine

/* Moves the ids to the caller; releases the rest of *p. */
struct tokens prompt_ids_take(struct prompt_ids *p);

/* Fill *p; on failure nothing is left to release. `context` may be released before *p, `ask` may not. Malformed UTF-8
 * in a text, in a question and in each half of `ask` becomes U+FFFD first. White space at the ends of text, ask and
 * question together is left out where the chat template does so. Thread-safe. ERR_FORMAT when `ask` does not
 * contain {question}, and when the model's own chat template is not known. */
int tokenizer_context(const struct tokenizer *t, const char *text, struct prompt_ids *p, struct err *err) MUST_CHECK;
int tokenizer_ask(const struct prompt_ids *context, const char *ask, struct prompt_ids *p, struct err *err) MUST_CHECK;

/* The same for a row. A row with turns (formats/context.h) is a conversation as the chat template writes it; its last
 * turn stays open. A last turn that is not the user's is closed before `ask`, which then opens a user turn. A row with
 * the single turn `prompt` is a prompt without a chat template: special tokens are parsed in it and in the text after
 * it, and the first token is put before it if the model wants one and it does not begin with that. ERR_FORMAT when the
 * template cannot write such turns. */
int tokenizer_context_row(const struct tokenizer *t, const struct context *c, struct prompt_ids *p,
                          struct err *err) MUST_CHECK;

/* Adds the ids of a question to *out: asked->ids, then the rest. */
int tokenizer_question(const struct prompt_ids *asked, const char *question, struct tokens *out,
                       struct err *err) MUST_CHECK;

/* Cuts a context to its first n ids (n: at most its length). Its questions no longer continue its text: they are
 * encoded on their own. */
void prompt_ids_cut(struct prompt_ids *context, int n);

#endif
