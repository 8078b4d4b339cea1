/* facts.h - the facts of an answer that another answer keeps: numbers, dates, names, whether it denies, its conduct.
 *
 *     facts_read(&reference, &(struct facts_of){ text, cut, FACTS_DETECT }, &err);
 *     facts_read(&answer, &(struct facts_of){ other, cut, reference.language }, &err);
 *     facts_kept(&reference, &answer, &share, &err);
 *
 * The rules are exact and made for English; docs/profiling.md#facts has them for users. A text in another language has
 * numbers and dates like 2026-02-03 alone. Each fact counts once, however often it is said.
 *
 * An answer that ended because its tokens were used up is cut: its last word may be half a word. A half word agrees
 * with every word that begins with it.
 */
#ifndef EVP_FACTS_H
#define EVP_FACTS_H

#include "base/buf.h"
#include "base/err.h"
#include "profiler/score/conduct.h"
#include "profiler/score/words.h"

#include <stdbool.h>
#include <stddef.h>

enum fact_kind { FACT_NUMBER, FACT_DATE, FACT_NAME, FACT_NEGATION };

struct fact {
    enum fact_kind kind;
    size_t at, bytes;     // where it is in the text
    int word, n_words;    // the same in words
    char number[24];      // FACT_NUMBER: its plain form, "1250", "12%"; of a longer one the beginning
    int year, month, day; // FACT_DATE; 0: not said
    bool half;            // the text was cut after it
    bool offered;         // in the answer it keeps a fact, in the reference it is none: "one", "first"
};

enum facts_language { FACTS_DETECT, FACTS_ENGLISH, FACTS_OTHER };

/* What facts_read() found. */
struct facts {
    enum facts_language language; // FACTS_ENGLISH or FACTS_OTHER
    struct words words;
    struct {
        struct fact *at; // in the order of the text
        int n, cap;
    } found;
    bool denies, affirms; // has a negation; says yes
    struct conduct conduct;
};

/* The rules to read a text by. */
struct facts_of {
    const char *text; // UTF-8
    bool cut;         // the answer used all its tokens
    enum facts_language language;
};

/* Finds the facts. FACTS_DETECT: a text is English unless most letters are of another script, or common words of
 * German, French, Spanish, Italian, Portuguese, Dutch and Polish outnumber English ones, or a quarter of its words (at
 * least eight) have letters outside ASCII. An answer is read in the language found for its reference. ERR_NOMEM;
 * facts_release() frees. The text is not kept. */
int facts_read(struct facts *f, const struct facts_of *of, struct err *err) MUST_CHECK;
void facts_release(struct facts *f); // zeroed is fine

/* Does the answer have a fact of the reference? */
bool facts_has(const struct facts *answer, const struct facts *reference, const struct fact *fact);

/* The share of the reference's facts that the answer has, from 0 to 1; NAN: the reference has none, and nothing of its
 * conduct could be lost or was. An answer that denies, where the reference does not, has lost one fact more, the only
 * one if the reference has none.
 * ERR_FORMAT: texts so long that comparing them would take minutes. */
int facts_kept(const struct facts *reference, const struct facts *answer, double *share, struct err *err) MUST_CHECK;

#endif
