/* batch.h - requests and replies as files, in the form of OpenAI's batch API, which `vllm run-batch` reads and writes
 * too.
 *
 * A line per request, and a line per reply, in any order:
 *
 *     {"custom_id":"evp-0123456789abcdef-2of3","method":"POST","url":"/v1/chat/completions","body":{"model":...}}
 *     {"id":"...","custom_id":"evp-0123456789abcdef-2of3","response":{"status_code":200,"body":{...}},"error":null}
 *
 * The id is made of the model, the number of questions and the id and text of the context, so a reply is never taken
 * for one to another request. A batch cannot ask again without a feature that the service lacks: its requests use a
 * JSON schema, but no system message.
 */
#ifndef EVP_BATCH_H
#define EVP_BATCH_H

#include "base/err.h"
#include "qgen/asked.h"
#include "qgen/reply.h"

#include <stdint.h>

/* Writes everything that asked_next() gives to a file, as far as the cap on tokens allows. *n: the requests written;
 * *n_left: those that may take too many. */
int batch_write(const char *path, struct asked *asked, int64_t *n, int64_t *n_left, struct err *err) MUST_CHECK;

struct batch_totals {
    int64_t replies;    // to requests that remain, failures included
    int64_t others;     // to other requests: answered, or of other texts, model, number of questions or sections
    struct usage usage; // of the replies that were read
};

/* Reads a file of replies ("-": standard input). Of several to one request the first with questions counts. A context
 * is given up if all replies to one of its requests have failed. Fails with ERR_FORMAT, and file and line in the
 * message, when a line is not a reply of a batch. */
int batch_read(const char *path, struct asked *asked, struct batch_totals *totals, struct err *err) MUST_CHECK;

#endif
