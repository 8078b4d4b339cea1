/* checkpoint.h - keeps the answers of a service, so that no request is paid for twice.
 *
 * While a run writes FILE, each answered context is appended to FILE.part as one line, at once:
 *
 *     {"evp":"answers","version":1,"model":"m","per_context":8}
 *     {"context":"a","digest":"<XXH3-64 of its text>","questions":["...","..."]}
 *
 * A run that is killed loses at most the line that was being written. The next run takes its answers from there, and
 * from a finished FILE whose header names the same model and number of questions. An answer is used only for a context
 * with the same id and the same text.
 */
#ifndef EVP_CHECKPOINT_H
#define EVP_CHECKPOINT_H

#include "base/digest.h"
#include "base/err.h"
#include "base/map.h"
#include "qgen/question_list.h"

#include <stdbool.h>
#include <stdio.h>

struct checkpoint_key { // identifies the requests; answers to other requests are not used
    const char *model;
    int per_context;
};

struct checkpoint_answer {
    char digest[XXH3_HEX];
    struct question_list list;
};

struct checkpoint {
    struct map ids; // of contexts -> answers.at
    struct {
        struct checkpoint_answer *at;
        int n, cap;
    } answers;
    char *path;      // FILE.part
    FILE *f;         // that file, at its end, locked
    int n_malformed; // lines of it that were skipped
};

/* Reads FILE and FILE.part, and opens the latter for appending. Fails with ERR_FORMAT when FILE.part is not a file of
 * answers or was made with another key, and with ERR_IO while another run has it open. A cut last line is dropped;
 * other malformed lines are skipped. */
int checkpoint_open(struct checkpoint *c, const char *file, const struct checkpoint_key *key,
                    struct err *err) MUST_CHECK;

/* Moves the answer about a context to *list; false: no answer. */
bool checkpoint_take(struct checkpoint *c, const char *id, const char *digest, struct question_list *list);

int checkpoint_add(struct checkpoint *c, const char *id, const char *digest, const struct question_list *list,
                   struct err *err) MUST_CHECK;

void checkpoint_remove(struct checkpoint *c); // deletes FILE.part, once FILE is written
void checkpoint_close(struct checkpoint *c);  // keeps FILE.part; zeroed is fine

/* Adds to FILE's header the members by which checkpoint_open() recognises it. */
struct json_out;
void checkpoint_key_to_json(const struct checkpoint_key *key, struct json_out *w);

#endif
