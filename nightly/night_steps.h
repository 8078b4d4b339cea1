/* night_steps.h - the steps of a night: which tool runs when, with which words.
 *
 * Without a budget everything new is profiled. With one, evp-drift checks the plan in force on the newest questions,
 * and the rest goes to a random sample of the contexts, which grows from night to night.
 */
#ifndef EVP_NIGHT_STEPS_H
#define EVP_NIGHT_STEPS_H

#include "nightly/run_tool.h"
#include "nightly/nightly.h"

#include <stdbool.h>

struct night_step_kind {
    const char *name;
    bool (*needed)(const struct nightly *n); // NULL: always
    int (*words)(const struct nightly *n, struct command *c, struct err *err);
    const char *figures; // names of numbers of its summary to print, separated by blanks; NULL: none
    bool helps;          // the night goes on without it
};

/* In their order; after the last one a kind without a name. */
extern const struct night_step_kind night_steps[];

#endif
