/* request_internal.h - between the files that read one line of a log: request.c finds the requests in it,
 * request_prompt.c takes the prompt of one, request_vllm.c that of a line of vLLM, request_trace.c a row of a trace.
 *
 * Each returns 0 when it gave the request to the visitor, or counted why it cannot be used.
 */
#ifndef EVP_REQUEST_INTERNAL_H
#define EVP_REQUEST_INTERNAL_H

#include "base/json.h"
#include "logs/request.h"

/* Passed down while searching a line. */
struct request_finding {
    struct request_line *l;
    const struct request_visitor *visitor;
    bool of_sglang; // which cuts long texts in their middle
};

void request_begin(struct request *r); // without messages and ids
int request_flawed(const struct request_finding *f, enum request_flaw flaw);
int request_deliver(const struct request_finding *f, struct err *err) MUST_CHECK;

int request_give_prompt(const struct request_finding *f, const char *text, struct err *err) MUST_CHECK;
int request_read_prompt(const struct request_finding *f, const struct json *prompt, struct err *err) MUST_CHECK;
int request_read_messages(const struct request_finding *f, const struct json *row, const struct json *messages,
                          struct err *err) MUST_CHECK;
int request_give_vllm(const struct request_finding *f, const char *quoted,
                      struct err *err) MUST_CHECK; // quoted by repr()
int request_read_trace(const struct request_finding *f, const struct json *row, const struct json *ids,
                       struct err *err) MUST_CHECK;

#endif
