/* Any bytes as a request log or a trace: what is read is replayed, and every unit is found or computed. */
#include "cmd/assumed.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void drop_sentence(void *arg, const char *sentence)
{
    (void)arg, (void)sentence;
}

static void drop_bytes(void *arg, int64_t bytes)
{
    (void)arg, (void)bytes;
}

static void drop_log(void *arg, const char *label, const struct request_log *log)
{
    (void)arg, (void)label, (void)log;
}

static void check_replay(const struct gain_log *g, int n_gpus)
{
    static const struct replay_policy policy[] = { { 0, 0, 1 }, { 2, 3, 1 }, { 1000000, 5, 2 } };
    struct replay r = { .request = g->requests.at,
                        .n_requests = g->requests.n,
                        .parent = g->parent,
                        .n_blocks = g->n_blocks,
                        .block_units = g->traces ? REQUEST_BLOCK : PREFIX_CHUNK,
                        .timed = g->n_timeless < g->requests.n,
                        .unit_s = 1e-3,
                        .pair_s = 1e-9,
                        .dram_unit_s = 1e-4,
                        .ssd_unit_s = 1e-3,
                        .n_gpus = n_gpus,
                        .policy = policy,
                        .n_policies = 3 };
    struct replay_outcome out[3];
    struct err err;

    if (r.timed)
        replay_sort(&r);
    if (replay_run(&r, out, &err))
        return;
    for (int i = 0; i < 3; i++)
        if (out[i].dram < 0 || out[i].ssd < 0 || out[i].computed < r.n_requests || !(out[i].ttft_s >= 0) ||
            out[i].dram + out[i].ssd + out[i].computed != g->units || out[i].computed > out[0].computed)
            abort();
}

/* Every row of a prompt begins where the one before it ends. */
static void check_assumed(struct gain_log *g)
{
    const struct gain_model m = { .gpu = serving_find("H100", NULL), .kv_token = 1000, .unit_tokens = 0.25 };
    const struct assumed_configs c = { .factor = { 3 }, .quality = { 0.5 }, .n = 1 };
    struct assumed a;
    struct err err;

    if (assumed_make(&a, g, &m, &c, &err) == 0)
        for (int i = 0; i < a.trace.n; i++)
            for (int k = a.first[i]; k < a.first[i + 1]; k++)
                if (a.path[k] < 0 || a.path[k] >= a.table.n_contexts ||
                    (k > a.first[i] && a.path[k - 1] >= a.path[k]) || a.table.n_tokens[a.path[k]] < a.block_tokens ||
                    a.token[i] < 1 || a.trace.request[i].at < 0)
                    abort();
    assumed_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct requests rq = { .damaged = drop_sentence, .reading = drop_bytes, .read = drop_log };
    static struct gain_log g;
    struct err err;
    char path[32];
    int fd = memfd_create("log", 0);

    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (requests_open(&rq, path, &err) == 0 && gain_log_read(&g, &rq, &err) == 0) {
        check_replay(&g, (int)(n % 3) + 1);
        check_assumed(&g);
    }
    gain_log_release(&g);
    requests_close(&rq);
    close(fd);
    return 0;
}
