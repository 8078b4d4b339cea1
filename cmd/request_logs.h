/* request_logs.h - what the tools that read request logs share: the choice of models, and the messages about the logs.
 * No message contains words of a prompt, but that of prompts that differ near their beginning. */
#ifndef EVP_REQUEST_LOGS_H
#define EVP_REQUEST_LOGS_H

#include "base/opt.h"
#include "logs/requests.h"
#include "replay/gain_model.h"

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

/* After the reading: what was left out, in the summary, too, and what was read. request_logs_lack: was so much left out
 * that the status is 1? Of lines that are not JSON 1 % may be. */
void request_logs_say_left_out(const struct requests *rq);
bool request_logs_lack(const struct requests *rq);
void request_logs_say(const struct requests *rq);

/* Logs to be replayed, and the model that they are for. */
struct replayed_logs {
    struct requests rq;
    struct gain_log log;
    struct gain_model model;
    struct trace_reuse reuse;
};

/* Where they come from, as options say. */
struct replayed_from {
    const char *model, *gpu;
    const struct opt_list *dataset; // the wanted models; none: all
    const char *reuse;              // NULL: none
    int time_unit;                  // of traces, as OPT_TIME_UNIT says
    char **path;                    // (n)
    int n;
};

double replayed_unit(int time_unit); // in seconds; 0: auto
void request_logs_say_unit(double unit);

/* Opens the model, reads the logs, measures tokens, and says what was left out. */
int replayed_logs_read(struct replayed_logs *r, const struct replayed_from *from, struct err *err) MUST_CHECK;
void replayed_logs_release(struct replayed_logs *r); // zeroed is fine

#endif
