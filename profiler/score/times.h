/* times.h - times of a serving GPU that somebody measured there (docs/formats/times.md), in place of a table's.
 *
 *     struct times times;
 *     times_read(&times, "times.json", &err);
 *     times_apply(&table, &times, &err);
 *     times_release(&times);
 */
#ifndef EVP_TIMES_H
#define EVP_TIMES_H

#include "base/err.h"
#include "base/json.h"
#include "profiler/table/table.h"

/* After a context of so many tokens something takes so long. Points rise in tokens and do not fall in seconds. */
struct times_curve {
    struct times_point {
        int64_t n_tokens;
        double seconds;
    } * at;
    int n, cap;
};

struct times {
    char *name; // of what was measured; "" when the file does not say
    struct times_curve prefill, question;
    struct {
        struct times_rate {
            char *config; // the name of a config, or how it begins up to a ':' or '+'
            double bytes_per_s;
        } * at;
        int n, cap;
    } decompress;
};

enum { TIMES_VERSION = 1 };

/* ERR_IO: cannot read. ERR_FORMAT: not such a file, with a sentence. *times is zeroed on failure. */
int times_read(struct times *times, const char *path, struct err *err) MUST_CHECK;
int times_from_json(struct times *times, const struct json *root, struct err *err) MUST_CHECK;
void times_release(struct times *times); // zeroed is fine

/* Of a context of n tokens. Between points it is linear, and goes on behind the last as between the last two; a prefill
 * takes nothing for no tokens, a question before the first point what it takes there. */
double times_prefill_s(const struct times *times, int64_t n_tokens);
double times_question_s(const struct times *times, int64_t n_tokens);

/* Replaces the times of a table: of prefills, with their curves, of questions and of decompression. Spreads become
 * unknown. Again with the same gives the same. *n_longer: contexts longer than the last point of the prefill.
 * ERR_FORMAT: a context without a number of tokens, or a config that is decompressed and has no rate. */
int times_apply(struct table *t, const struct times *times, int *n_longer, struct err *err) MUST_CHECK;

#endif
