/* night_journal.h - the state folder of evp-nightly: its lock, its nights, and what of the last night is done.
 *
 * nights/000012/night.json is the journal and, in the end, the summary of a night (docs/formats/nightly.md). It is
 * written anew after every step, whole or not at all. A night without "ended" was killed; it goes on if it began less
 * than NIGHT_HOURS ago by the clock, else a new one begins: its steps find what the old one left.
 */
#ifndef EVP_NIGHT_JOURNAL_H
#define EVP_NIGHT_JOURNAL_H

#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

enum { NIGHT_HOURS = 12 };
#define NIGHT_PLANS "load" // the step after which the plan of the night is in force

struct night {
    int lock;       // file descriptor; -1: not locked
    int64_t number; // 1, 2, ...; 0: the folder was not opened
    double started;
    double last_success; // when a plan last came into force; 0: never
    bool resumed;
    bool healed;  // a file of the state folder was damaged
    char *folder; // nights/000012
    struct {
        struct json **at; // objects of "steps"
        int n, cap;
    } steps;
    struct {
        struct json **at; // those of the night before, for what they cost; may be empty
        int n, cap;
    } before;
};

/* A step that ended. */
struct night_step {
    const char *name, *command;
    int status;
    bool failed; // and ended the night
    double seconds;
    const struct json *summary; // of the tool; NULL: it wrote none
};

/* Locks the current folder, and finds the night to go on with or begins one; with `look`, only looks and changes
 * nothing. ERR_FAIL: another night is at work. */
int night_open(struct night *n, bool look, struct err *err) MUST_CHECK;
void night_close(struct night *n); // zeroed is not fine: lock -1

const struct json *night_find(const struct night *n, const char *step);        // done this night, or NULL
const struct json *night_find_before(const struct night *n, const char *step); // the night before, or NULL
bool night_planned(const struct night *n);                                     // is its plan in force?
bool night_is_partial(const struct night *n);                                  // did a step leave something out?

/* Notes a step, and writes the journal. */
int night_note(struct night *n, const struct night_step *step, struct err *err) MUST_CHECK;

/* Ends the night with an exit status, and removes all but the last `keep` nights. */
int night_end(struct night *n, int status, int64_t keep, struct err *err) MUST_CHECK;

/* Writes Prometheus' text format: the night, its steps and the numbers of their summaries. Of a night that could not
 * begin only its status. night_metrics_begin: a night is at work, and all else is still that of the night before. */
int night_metrics(const struct night *n, int status, const char *path, struct err *err) MUST_CHECK;
int night_metrics_begin(const char *path, struct err *err) MUST_CHECK;

#endif
