/* requests_talks.c - tells the requests of one conversation from those of others: a prompt that begins with the whole
 * of another's messages goes on with its conversation.
 *
 * Whole prompts, and their beginnings up to each answer, are digests in a set. In a prompt that a server logged after
 * it applied a template, an answer begins behind a special token.
 */
#include "base/digest.h"
#include "logs/requests_internal.h"

#include <stdint.h>
#include <string.h>

/* Where the next answer begins, from `at` on; the end of the prompt: there is none. */
static size_t next_answer(const struct request *r, int *message, size_t at)
{
    const char *text = r->bytes.at, *end = text + r->bytes.n;

    if (request_role(r, r->message.n - 1) != TURN_PROMPT) {
        while (++*message < r->message.n)
            if (request_role(r, *message) == TURN_ASSISTANT)
                return r->message.at[*message] - REQUEST_MARK;
        return r->bytes.n;
    }
    for (const char *s = text + at; s < end; s++) {
        size_t n = requests_marker(s, end);
        if (n > strlen("assistant") && (memcmp(s + n - 9, "assistant", 9) == 0 || memcmp(s + n - 5, "model", 5) == 0))
            return (size_t)(s - text) + n;
        if (n == strlen("[/INST]") && memcmp(s, "[/INST]", n) == 0)
            return (size_t)(s - text) + n;
    }
    return r->bytes.n;
}

int requests_continued(struct requests *rq, const struct request *r, size_t *from, struct err *err)
{
    uint64_t key = r->apart;
    int message = 0;
    bool templated = request_role(r, r->message.n - 1) == TURN_PROMPT;

    *from = 0;
    for (size_t at = 0, end;; at = end) {
        int32_t node = -1;
        end = next_answer(r, &message, at);
        /* the last answer of a templated prompt is the one to be given: it ends there */
        bool whole = end == r->bytes.n || (templated && next_answer(r, &message, end) == r->bytes.n);
        key = digest_xxh3_seeded(r->bytes.at + at, end - at, key);
        if (prefix_step(&rq->talks, key, &node, err))
            return err->code;
        struct prefix_node *seen = &rq->talks.at[node];
        if (whole) {
            *from = seen->talks ? SIZE_MAX : *from;
            seen->uses++;
            return 0;
        }
        *from = seen->uses ? end : *from;
        seen->talks++;
    }
}
