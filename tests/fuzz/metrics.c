/* metrics.c - any bytes as a file of metrics: refused with a sentence, or records that are written and read back the
 * same, and whose reads give a tier numbers that it may have or that it refuses.
 */
#include "cmd/tiers_metrics.h"
#include "loader/libevicpress/evp_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Writes the records, and reads them back as *to. */
static char *write_and_read(const struct metrics *from, struct metrics *to)
{
    struct buf text = { 0 };
    struct err err;

    metrics_write(from, "a\"\\\n.prom", &text);
    char *copy = buf_failed(&text) ? NULL : strdup(text.at);
    if (!copy || metrics_parse(to, text.at, &err))
        abort();
    buf_release(&text);
    return copy;
}

static void draw_line(const struct metrics *m)
{
    const struct evp_counters all = metrics_total(m, "", "");
    const struct read_line line = tiers_read_line(&all, 1e-3);
    const struct tier t = { .name = "a",
                            .capacity = 1,
                            .read_bytes_per_s = line.bytes_per_s,
                            .write_bytes_per_s = 1,
                            .latency_s = line.latency_s };
    struct err err;

    if (!tier_check(&t, &err) && !(isfinite(tier_read_s(&t, 1)) && tier_read_s(&t, 1) >= 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct metrics first = { 0 }, second = { 0 }, third = { 0 };
    char *text = calloc(1, n + 1);
    struct err err;

    memcpy(text, data, n);
    if (!metrics_parse(&first, text, &err)) {
        char *a = write_and_read(&first, &second), *b = write_and_read(&second, &third); /* the order may change once */
        char *c = write_and_read(&third, &first);
        if (strcmp(b, c) != 0)
            abort();
        draw_line(&second);
        free(a);
        free(b);
        free(c);
    }
    metrics_release(&first);
    metrics_release(&second);
    metrics_release(&third);
    free(text);
    return 0;
}
