/* score.c - scores lines {"dataset":D,"answer":A,"gold":[G,...]} from standard input by profiler/score/metric.h; prints
 * a score per line. */
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "profiler/score/metric.h"

#include <stdio.h>
#include <string.h>

enum { GOLD_MAX = 1024 };

static int score_line(const char *line, size_t n, struct err *err)
{
    struct json *row = json_parse(line, n, err);
    const char *dataset, *answer, *gold[GOLD_MAX];
    struct metric_gold right = { gold, 0 };
    double score;

    if (!row || json_want_text(row, "dataset", &dataset, err) || json_want_text(row, "answer", &answer, err))
        return err->code;
    for (const struct json *g = json_first(json_get(row, "gold")); g && right.n < GOLD_MAX; g = json_next(g))
        gold[right.n++] = json_text(g);
    if (metric_score(dataset, answer, &right, &score, err))
        return err->code;
    printf("%.17g\n", score);
    json_free(row);
    return 0;
}

int main(void)
{
    struct buf text = { 0 };
    struct err err = { 0 };
    int code = file_read(&text, "-", 1 << 26, &err);

    for (const char *at = buf_str(&text), *end; !code && (end = strchr(at, '\n')); at = end + 1)
        code = score_line(at, (size_t)(end - at), &err);
    if (code)
        fprintf(stderr, "%s\n", err.msg);
    buf_release(&text);
    return code != 0;
}
