/* attend_case.h - spans of attention, what they work on, and what comes out, for the tests of kernels. */
#ifndef EVP_TESTS_ATTEND_CASE_H
#define EVP_TESTS_ATTEND_CASE_H

#include "tests/kernels/compare.h"

enum { MAX_SPANS = 5, LAYERS = 2, LAYER = 1 };

/* Of ATTN_SHARED `first` is the number of a cache and n_keys what its longest head has. */
struct attn_case {
    enum attn_kind kind;
    int G, group, K;
    struct attn_span spans[MAX_SPANS]; // up to the first without rows
    int window;
};

/* Has the backend such heads? cuda refuses more than 256 columns, and in bf16 those that are no multiple of 8. */
bool has_heads(const struct backend *be, int K);

int n_spans(const struct attn_case *c);
int n_tokens(const struct attn_case *c);

struct attn_operands {
    struct attn_job job; // without spans and results
    void *q, *k, *v;
    struct kv_rows *host, *device;
    int32_t *since;
    float *sinks; // not of the job
};

struct attn_operands operands_of(struct backend *be, const struct attn_case *c);
void operands_free(struct backend *be, struct attn_operands *o);

enum { OUT = 1, PART = 2, LSE = 4, ALL = 7, PITCH = 5 }; // rows of out are PITCH numbers further apart than long

/* On the host; what was not asked for is NULL. */
struct attended {
    float *out, *part, *lse;
};

struct attended attend_on(struct backend *be, const struct attn_operands *o, const struct attn_span *spans, int n,
                          int which);
void attended_free(struct attended a);

#endif
