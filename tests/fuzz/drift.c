/* drift.c - any bytes as a state of evp-drift and as a log of served answers: refused with a sentence, or wealth and
 * times within their bounds, and pairs of answers to one question. */
#include "drift/drift_served.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Context "a", placed as "v"; the table has an answer to "q". */
static void begin(struct drift *d, struct table *t)
{
    struct err err;

    if (table_alloc(t, 1, 2, 1, &err) || map_add(&d->ids, "a", 1, NULL) != 0)
        abort();
    t->context_id[0] = "a";
    t->config_name[0] = "none";
    t->config_name[1] = "v";
    t->question_text[0] = "q";
    t->question_context[0] = 0;
    t->answer_n_tokens[0] = 1;
    t->answer_text[0] = "yes";
    d->table = t;
    d->at[0] = (struct drift_context){ .id = "a", .config = 1, .n_known = 1, .asked_until = DRIFT_NEVER };
    drift_test_night(&d->at[0].test);
}

static void read_state(struct drift *d, const char *path)
{
    struct err err;
    const struct drift_context *c = &d->at[0];

    if (drift_read_state(d, path, &err))
        return;
    double wealth = drift_test_wealth(&c->test);
    if (!(wealth >= 0 && wealth <= 1e30) || !(c->asked_until >= DRIFT_NEVER && isfinite(c->asked_until)) ||
        c->moved != (wealth >= d->n_compressed / d->false_alarms))
        abort();
}

static void read_served(const struct drift *d, const char *path)
{
    struct served s = { .d = d };
    struct err err;
    int n_pairs = 0;

    if (!served_read(&s, path, &err) && !served_pair(&s, &err)) {
        for (int i = 0; i < s.n; i++) {
            const struct served_answer *a = &s.at[i];
            n_pairs += a->reference != NULL;
            if (a->context != 0 || !(a->time >= 0) || (a->uncompressed && a->reference) ||
                (strcmp(a->question, "q") == 0 && !a->uncompressed && strcmp(a->reference, "yes") != 0))
                abort();
        }
        if (n_pairs != s.n_pairs || s.n_skipped + s.n_other + s.n_before + s.n > s.n_lines)
            abort();
    }
    served_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct drift_context at[1];
    struct drift d = { .at = at, .n = 1, .n_compressed = 1, .false_alarms = 0.01 };
    struct table t;
    char path[32];
    int fd = memfd_create("drift", 0);

    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    begin(&d, &t);
    read_state(&d, path);
    read_served(&d, path);
    close(fd);
    map_release(&d.ids);
    table_release(&t);
    return 0;
}
