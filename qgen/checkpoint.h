/* checkpoint.h - answers of a service that are not to be paid for twice.
 *
 * While a run writes FILE, each answered context is appended to FILE.part as one line, at once:
 *
 *     {"evp":"answers","variant":1,"model":"m","per_context":8}
 *     {"context":"a","digest":"<XXH3-64 of its text>","questions":["...","..."]}
 *
 * Killed at any moment, at most the line being written is lost. The next run takes its answers from there, and from a
 * finished FILE whose header says the same model and number of questions. An answer is used for a context with the
 * same id and the same text only.
 */
#ifndef EVP_CHECKPOINT_H
#define EVP_CHECKPOINT_H

#include "base/digest.h"
#include "base/err.h"
#include "base/map.h"
#include "qgen/list.h"

#include <stdbool.h>
#include <stdio.h>

struct saved_key { // answers to other requests are not ours
    const char *model;
    int per_context;
};

struct saved_answer {
    char digest[XXH3_HEX];
    struct asked_list list;
};

struct saved {
    struct map ids; // of contexts -> at
    struct saved_answer *at;
    int room;
    char *path; // FILE.part
    FILE *f;    // it, at its end
};

/* Reads FILE and FILE.part, and opens the latter for appending. Fails with ERR_FORMAT when it is not ours, or was made
 * with another key. A last line that was cut is dropped. */
int saved_open(struct saved *s, const char *file, const struct saved_key *key, struct err *err) MUST_CHECK;

/* Moves the answer about a context to *list; false when there is none. */
bool saved_take(struct saved *s, const char *id, const char *digest, struct asked_list *list);

int saved_add(struct saved *s, const char *id, const char *digest, const struct asked_list *list,
              struct err *err) MUST_CHECK;

/* FILE is written: takes FILE.part away. */
void saved_remove(struct saved *s);
void saved_close(struct saved *s); // keeps FILE.part; zeroed is fine

/* The members that say in FILE's header and rows what saved_open() will look for. */
struct json_out;
void saved_key_to_json(const struct saved_key *key, struct json_out *w);

#endif
