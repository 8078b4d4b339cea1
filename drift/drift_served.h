/* drift_served.h - answers that a server gave, from its log: JSON Lines without header or end line, plain or
 * compressed. docs/formats/streams.md has the fields. Other lines are counted and skipped.
 *
 *     served_read(&s, path, &err);                        // for each log
 *     served_pair(&s, &err);                              // after the last
 *     for each pair: the similarity of s.at[i].answer and s.at[i].reference
 */
#ifndef EVP_DRIFT_SERVED_H
#define EVP_DRIFT_SERVED_H

#include "drift/drift.h"

struct served_answer {
    int context; // index in d->at
    char *question, *answer;
    bool uncompressed;     // the uncompressed cache's
    double time;           // 0: unknown
    const char *reference; // the uncompressed cache's answer to this question; borrowed; NULL: none
};

struct served {
    const struct drift *d;
    struct served_answer *at;
    int n, cap;
    int64_t n_lines, n_skipped; // lines; those that are no served answer
    int64_t n_other;            // of contexts and configs that the plan does not place
    int64_t n_before;           // not newer than the state
    int n_pairs, n_alone;       // answers of placed variants with a reference, and without one
};

/* ERR_IO, ERR_FORMAT: the log cannot be read or unpacked, or a line is too long. */
int served_read(struct served *s, const char *path, struct err *err) MUST_CHECK;

/* Finds references, in the table or else in the logs. */
int served_pair(struct served *s, struct err *err) MUST_CHECK;
void served_release(struct served *s);

#endif
