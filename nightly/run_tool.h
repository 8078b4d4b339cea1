/* run_tool.h - a tool that runs other tools of the same build: their command lines, printed as a person would type
 * them.
 *
 *     struct command c = { 0 };
 *     command_add(&c, "evp-score", "profile.h5", "-o", "table.h5", NULL);
 *     command_split(&c, options);                      // more words, separated by blanks
 *     int status = command_run(&c, &err);              // negative: it could not be run, or was killed
 *     command_release(&c);
 *
 * The child's stdin is empty; its stdout and stderr are the caller's. It ends when the caller dies, so that no tool is
 * left alone with a lock.
 */
#ifndef EVP_RUN_TOOL_H
#define EVP_RUN_TOOL_H

#include "base/err.h"

#include <stdbool.h>

struct command {
    char **at; // copies of the words; the first is the tool's name
    int n, cap;
    bool failed;      // no memory; command_run() reports it
    bool quiet;       // the command line is not printed, and what the tool writes to stdout neither
    unsigned limit_s; // the tool is ended after so many seconds, by SIGALRM; 0: never
};

/* Adds words up to NULL. */
void command_add(struct command *c, const char *word, ...) __attribute__((sentinel));

/* Adds an option and its value, unless that is NULL. */
void command_option(struct command *c, const char *option, const char *value);

/* Adds the words of `text`, which blanks separate; NULL: none. */
void command_split(struct command *c, const char *text);

/* The command line, quoted for a shell; NULL without memory. The caller frees it. */
char *command_text(const struct command *c);

/* Prints the command line after a $, runs the tool and returns its exit status. ERR_FAIL: it was killed, or its time
 * was over; ERR_NOMEM. */
int command_run(struct command *c, struct err *err) MUST_CHECK;

/* The same for tools that have to succeed; releases the command. Status 1 of evp-profile that wrote `profile` sets
 * *partial: contexts were left out. Any other status above 0 is ERR_FAIL. */
int command_finish(struct command *c, const char *profile, bool *partial, struct err *err) MUST_CHECK;
void command_release(struct command *c); // zeroed is fine

#endif
