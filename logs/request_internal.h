/* request_internal.h - between the files that read one line of a log: request.c finds the requests in it,
 * request_below.c those under fields that it does not know, request_otel.c those in attributes of spans;
 * request_body.c knows the bodies of all APIs, request_fields.c their fields, request_prompt.c makes the prompt,
 * request_cut.c tells whether it is whole; request_vllm.c takes that of a line of vLLM, request_trace.c a trace's row.
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
    bool of_sglang;    // which cuts long texts in their middle
    bool of_responses; // sent to /v1/responses
    bool of_generate;  // to Ollama's /api/generate
    bool of_gateway;   // a row of LiteLLM, which has many fields of its own
    bool failed;       // the server refused it, or gave no answer
    bool below;        // a field that is none of REQUEST_WRAPPERS and REQUEST_LINES
};

enum { REQUEST_DEPTH = 16 }; // of objects, lists and texts with JSON

int request_find(const struct request_finding *f, const struct json *row, int depth, struct err *err) MUST_CHECK;
int request_find_in_text(const struct request_finding *f, const char *text, int depth, struct err *err) MUST_CHECK;

/* request_below.c: the fields and elements that request_find() does not know; every text is read once. */
int request_find_below(const struct request_finding *f, const struct json *v, int depth, struct err *err) MUST_CHECK;

/* request_otel.c: the attributes of a span or an event, a list of keys and values or an object. */
int request_find_attributes(const struct request_finding *f, const struct json *attributes, int depth,
                            struct err *err) MUST_CHECK;

void request_begin(struct request *r); // without messages and ids
int request_flawed(const struct request_finding *f, enum request_flaw flaw);
int request_deliver(const struct request_finding *f, struct err *err) MUST_CHECK;

/* False: the row is no body. True: err->code says how it went. */
bool request_read_body(const struct request_finding *f, const struct json *row, struct err *err) MUST_CHECK;

/* A list of messages in a row, under any name. */
int request_read_chat(const struct request_finding *f, const struct json *row, const struct json *messages,
                      struct err *err) MUST_CHECK;

bool request_says(const struct json *field); // is it more than null, false, or empty?

/* These return a flaw, N_REQUEST_FLAWS for none, or an error. Fields and what stands in front come before messages. */
struct request_message {
    const char *role;
    const struct json *content, *beside; // beside: the object whose other fields belong to it
    const char *between;                 // texts of its content
};
int request_read_fields(const struct request_finding *f, const struct json *row, struct err *err) MUST_CHECK;
int request_add_front(const struct request_finding *f, const struct json *field, int flaw, struct err *err) MUST_CHECK;
int request_add_message(const struct request_finding *f, const struct request_message *m, struct err *err) MUST_CHECK;
int request_add_item(const struct request_finding *f, const struct json *item, struct err *err) MUST_CHECK;

/* After the last message: gives the request out, or counts why not. */
int request_finish(const struct request_finding *f, int flaw, struct err *err) MUST_CHECK;

/* A prompt of /v1/completions: a text, several texts, or ids, also as a line of vLLM has them. */
int request_give_prompt(const struct request_finding *f, const char *text, struct err *err) MUST_CHECK;
int request_read_prompts(const struct request_finding *f, const struct json *prompt, struct err *err) MUST_CHECK;
int request_give_ids(const struct request_finding *f, const char *list, struct err *err) MUST_CHECK;

/* Is it a text that its logger cut? Notes whose. */
bool request_is_cut(const struct request_finding *f, const char *text, size_t n);

int request_give_vllm(const struct request_finding *f, const char *quoted,
                      struct err *err) MUST_CHECK; // quoted by repr()
/* request_trace.c. 0: the row, or the line, is none of a trace. */
int request_find_trace(const struct request_finding *f, const struct json *row, struct err *err) MUST_CHECK;
int request_find_counts(const struct request_finding *f, const char *line, struct err *err) MUST_CHECK;

/* Adds the line with quotes around whole numbers that a double might not hold; false: it has none. */
bool request_quote_numbers(struct buf *to, const char *line, size_t n);

#endif
