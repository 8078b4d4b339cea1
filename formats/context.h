/* context.h - rows of the two streams that most tools read: contexts and questions.
 *
 *     contexts:  {"id","dataset","text","ask","turns":[{"role","chars"}],"inputs":[{"question","answers":[...]}],
 *                 "chars","n_tokens"}
 *     questions: {"id","context","split":"train"|"test","text","origin":"api"|"offline"|"dataset"|"log","asked_at"}
 *
 * `text` is exactly what a serving system would cache; `ask` follows it, with {question} where the question goes; what
 * follows {reply} in it begins the model's reply.
 * Without `turns` the text begins one message of a user. With `turns` it is a conversation: each turn gives the role
 * and length of one message. The last message is open: the question continues it.
 */
#ifndef EVP_CONTEXT_H
#define EVP_CONTEXT_H

#include "base/err.h"
#include "base/map.h"
#include "base/rows.h"

#include <stdint.h>

struct context_input { // a question that came with the dataset
    char *question;
    char **answer;
    int n_answers;
};

/* TURN_PROMPT: a prompt without a chat template, in which special tokens count; it is the only turn. */
enum turn_role { TURN_SYSTEM, TURN_USER, TURN_ASSISTANT, TURN_PROMPT, N_TURN_ROLES };
const char *turn_role_name(enum turn_role role); // "system", "user", "assistant", "prompt"
int turn_role_find(const char *name);            // the role, or -1

struct turn {
    enum turn_role role;
    size_t n; // bytes of the text; turns follow each other without gaps
};

/* Bytes of the longest text: 10 million tokens. rows.h can still read the escaped line of such a text. */
enum { CONTEXT_MAX_TEXT = 32 << 20 };

struct context {
    char *id, *dataset, *text, *ask;
    struct {
        struct context_input *at;
        int n, cap;
    } inputs;
    struct {
        struct turn *at;
        int n, cap;
    } turns;          // none: the text begins one message of a user
    int64_t chars;    // characters (code points) of text
    int64_t n_tokens; // of the context (engine/tokens/tokenizer.h); -1: no model was asked
};

/* Follows a plain text. Of five wordings tried on the default model, this one made it answer instead of echo. */
#define CONTEXT_PLAIN_ASK "\n\nUsing only the text above, answer briefly: {question}"

enum { CONTEXT_ID = 1024 }; // an id has fewer bytes, and no control character

struct contexts {
    struct context *at;
    int n, cap;
    struct map ids;      // id -> index
    struct json *header; // of the stream, for lineage; NULL
};

/* Reads a row. `id` and `text` are required and checked; `ask` defaults to CONTEXT_PLAIN_ASK, `dataset` to "". */
int context_from_json(struct context *c, const struct json *row, struct err *err) MUST_CHECK;
void context_to_json(const struct context *c, struct json_out *w); // members only
void context_release(struct context *c);

/* Adds a question that came with the dataset. answers: a list of strings and numbers, one of them, or NULL. */
int context_add_input(struct context *c, const char *question, const struct json *answers, struct err *err) MUST_CHECK;

/* Moves into `to` the questions of `from` that `to` lacks. */
int context_unite(struct context *to, struct context *from, struct err *err) MUST_CHECK;

/* Reads all rows. Refuses an empty stream, an empty text and a repeated id; the message names file and line. */
int contexts_read(struct contexts *c, const char *path, struct err *err) MUST_CHECK;
void contexts_release(struct contexts *c);

enum split { SPLIT_TRAIN, SPLIT_TEST };
const char *split_name(enum split split);

#define QUESTION_ASKED_MAX 1e11 // in the year 5138; larger numbers are milliseconds by mistake

struct question {
    char *id, *context, *text, *origin;
    enum split split;
    double asked_at; // by the last request that asked it, in seconds since 1970, UTC; 0: unknown
};

struct questions {
    struct question *at;
    int n, cap;
    struct map ids;
    struct json *header;
};

/* An id that belongs to the text: CONTEXT/ and 12 digits of a digest of context and text. The caller frees it; NULL
 * without memory. Questions that come and go leave it as it is, so a profile finds its answers again. */
char *question_new_id(const char *context, const char *text);

/* The split that such an id draws: half of all ids train, whatever other questions there are. */
enum split question_split(const char *id);

int question_from_json(struct question *q, const struct json *row, struct err *err) MUST_CHECK;
void question_to_json(const struct question *q, struct json_out *w);
void question_release(struct question *q);
int questions_read(struct questions *q, const char *path, struct err *err) MUST_CHECK; // refuses an empty stream
void questions_release(struct questions *q);

/* If the header of the stream names the service's model, changes origin "api" to "api:MODEL". */
int questions_name_service(struct questions *q, struct err *err) MUST_CHECK;

#endif
