/* times.h - replaces a table's times by times measured on the serving GPU (docs/formats/times.md).
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

/* Time over context tokens. Points rise in tokens and do not fall in seconds. */
struct times_curve {
    struct times_point {
        int64_t n_tokens;
        double seconds;
    } * at;
    int n, cap;
};

struct times {
    char *name; // name of the measurement; "" when the file has none
    struct times_curve prefill, question;
    struct {
        struct times_rate {
            char *config; // the name of a config, or its beginning up to a ':' or '+'
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

/* Time for a context of n_tokens: linear between points, and beyond the last point as between the last two. Before the
 * first point a prefill's time falls to 0 at 0 tokens, and a question's time is constant. */
double times_prefill_s(const struct times *times, int64_t n_tokens);
double times_question_s(const struct times *times, int64_t n_tokens);

/* Replaces a table's times of prefills (with their curves), questions and decompression; spreads become unknown. A
 * second call with the same arguments changes nothing. *n_longer: contexts beyond the last point of the prefill curve.
 * ERR_FORMAT: a context without a number of tokens, or a config that needs decompression and has no rate. */
int times_apply(struct table *t, const struct times *times, int *n_longer, struct err *err) MUST_CHECK;

#endif
