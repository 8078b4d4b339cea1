/* conduct.h - what an answer does, beside what it says: its form, whether it refuses, its language.
 *
 * Compression is known to break these while answers still sound alike: Chen et al., "The Pitfalls of KV Cache
 * Compression" (arXiv 2510.00231). docs/profiling.md#facts has the rules for users. For profiler/score/facts.h.
 */
#ifndef EVP_CONDUCT_H
#define EVP_CONDUCT_H

#include "profiler/score/words.h"

#include <stdbool.h>

enum answer_form { FORM_PROSE, FORM_JSON, FORM_CODE, FORM_TABLE, FORM_LIST };

struct conduct {
    enum answer_form form;
    int items, rows; // lines that begin like a list's, like a table's
    bool refuses;    // English only
    bool english;    // by its words
    bool telling;    // has words enough for its language to be certain
    bool cut;        // the end may be missing
};

/* w: the words of the text. cut: its end may be missing. english: by its words; refusals are looked for only then. */
struct conduct conduct_read(const char *text, bool cut, const struct words *w, bool english);

/* Adds to *facts how many of the reference's forms, refusals and languages the answer could keep, and to *kept how many
 * it does: the form, if the reference is not prose; the refusal, if either refuses; the language, if it differs. */
void conduct_compare(const struct conduct *reference, const struct conduct *answer, int *facts, int *kept);

/* What of the reference's conduct the answer lost first, for people: "refuses", "lost its form"; or NULL. */
const char *conduct_lost(const struct conduct *reference, const struct conduct *answer);

#endif
