/* parse.h - numbers and sizes from text, checked to the last character; and as text for people. */
#ifndef EVP_PARSE_H
#define EVP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False, and *out untouched, unless the whole of s is one number in range. No blanks, no "inf", no "nan". */
bool parse_int(const char *s, int64_t *out);
bool parse_real(const char *s, double *out);

/* A number, or a percentage: 50% is 0.5. */
bool parse_fraction(const char *s, double *out);

/* A whole number; with k or M in thousands or millions: 32k, 1.5M. */
bool parse_count(const char *s, int64_t *out);

/* Bytes: digits and an optional unit K, M, G or T (powers of 1024) in either case, with an optional B or iB: 2g, 2GB
 * and 2GiB are 2G. With a unit, fractions are allowed: 1.5G. */
bool parse_size(const char *s, uint64_t *out);

/* from..to/step, or from..to with step 1 between whole numbers, 0.1 otherwise. */
struct range {
    double from, to, step;
};
bool parse_range(const char *s, size_t n, struct range *out); // n bytes; any numbers
/* Does the range rise in at most `max` steps? */
bool range_is_sound(const struct range *range, int max);
/* Number i, from 0: from + i * step rounded to 6 decimals; false after the last. `to` is included if a step comes
 * within 1e-9 of it. */
bool range_number(const struct range *range, int i, double *out);

/* Numbers and ranges separated by commas and blanks: the count of numbers, at most `max`, or -1. */
int parse_list(const char *s, double *at, int max);

/* Seconds: a number with an optional ns, us, ms, s, min, h or d. */
bool parse_seconds(const char *s, double *out);

/* The same in units of `unit` seconds, which are those of a number without one: with 3600, 3 is 3 hours and 3d is
 * 72. */
bool parse_time(const char *s, double unit, double *out);

/* --shard I/N: share I (from 1) of N; rows are dealt out in turn. {1, 1} is everything. */
struct shard {
    int64_t i, n;
};
bool parse_shard(const char *s, struct shard *out);
bool shard_has(struct shard shard, int64_t row); /* rows are counted from 0 */

enum { TEXT_SHORT = 32 };

/* "0 B", "512 B", "1.5 KiB", "23.4 MiB" ... */
const char *text_bytes(char out[TEXT_SHORT], double bytes);

/* "850 us", "12.3 ms", "4.2 s", "3 min 05 s", "2 h 10 min" */
const char *text_seconds(char out[TEXT_SHORT], double s);

/* The shortest decimal that reads back as the same double: 0.3, 1e-09, 12. NAN and infinities give "null". */
const char *text_real(char out[TEXT_SHORT], double v);

/* Is a word among others? `words` has blanks between them, and around. */
bool text_among(const char *words, const char *word);

#endif
