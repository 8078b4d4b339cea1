/* checkpoint.h - keeps the replies of a service, so that no request is paid for twice.
 *
 * While a run writes FILE, each reply is appended to FILE.part as one line, at once:
 *
 *     {"evp":"answers","version":1,"model":"m","per_context":8}
 *     {"context":"a","digest":"<XXH3-64 of its text>","section":2,"sections":3,"questions":["...","..."],
 *      "prompt_tokens":900,"completion_tokens":80}
 *
 * A run that is killed loses at most the line that was being written. The next run takes its answers from there, and
 * from a finished FILE whose header names the same model and number of questions. An answer is used only for a context
 * with the same id and the same text. FILE.part also counts tokens: a reply without a question takes some, too.
 */
#ifndef EVP_CHECKPOINT_H
#define EVP_CHECKPOINT_H

#include "base/digest.h"
#include "base/err.h"
#include "base/map.h"
#include "qgen/question_list.h"
#include "qgen/reply.h"

#include <stdbool.h>
#include <stdio.h>

struct checkpoint_key { // identifies the requests; answers to other requests are not used
    const char *model;
    int per_context;
};

/* What an answer is about. A context that was asked about as a whole is its only section. */
struct checkpoint_part {
    const char *id, *digest; // of the context, and of its text
    int section, n_sections; // from 0
};

struct checkpoint_answer {
    char digest[XXH3_HEX];
    struct question_list list;
};

struct checkpoint {
    struct map parts; // id, section, sections -> answers.at
    struct {
        struct checkpoint_answer *at;
        int n, cap;
    } answers;
    char *path;      // FILE.part
    FILE *f;         // that file, at its end, locked
    int64_t taken;   // the tokens of its replies and their prompts when it was opened
    int n_replies;   // its lines, those added included
    int n_malformed; // lines of it that were skipped
};

/* Reads FILE and FILE.part, and opens the latter for appending. Fails with ERR_FORMAT when FILE.part is not a file of
 * answers or was made with another key, and with ERR_IO while another run has it open. A cut last line is dropped;
 * other malformed lines are skipped. */
int checkpoint_open(struct checkpoint *c, const char *file, const struct checkpoint_key *key,
                    struct err *err) MUST_CHECK;

/* Moves an answer to *list; false: no answer. */
bool checkpoint_take(struct checkpoint *c, const struct checkpoint_part *part, struct question_list *list);

int checkpoint_add(struct checkpoint *c, const struct checkpoint_part *part, const struct question_list *list,
                   const struct usage *usage, struct err *err) MUST_CHECK;

void checkpoint_remove(struct checkpoint *c); // deletes FILE.part, once FILE has all questions
void checkpoint_close(struct checkpoint *c);  // keeps FILE.part; zeroed is fine

/* Adds to FILE's header the members by which checkpoint_open() recognises it. */
struct json_out;
void checkpoint_key_to_json(const struct checkpoint_key *key, struct json_out *w);

#endif
