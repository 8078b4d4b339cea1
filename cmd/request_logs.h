/* request_logs.h - what the tools that read request logs share: the choice of models, and the messages about the logs.
 * No message contains words of a prompt. */
#ifndef EVP_REQUEST_LOGS_H
#define EVP_REQUEST_LOGS_H

#include "base/opt.h"
#include "logs/requests.h"

/* Adds the names that the values of --dataset list. ERR_USAGE: --dataset without a name. */
int request_logs_wanted(struct map *wanted, const struct opt_list *dataset, struct err *err) MUST_CHECK;

/* Receives what is said while reading: damaged lines, what a log lacks, bytes read. Both structs live until the reading
 * ends. what: for the progress bar. */
struct request_logs {
    const struct requests *rq;
    const char *what;
    int64_t n_bytes; // read so far
};
void request_logs_listen(struct request_logs *logs, struct requests *rq, const char *what);

/* After the reading: what was left out, in the summary, too, and what was read. */
void request_logs_say_left_out(const struct requests *rq);
void request_logs_say(const struct requests *rq);

#endif
