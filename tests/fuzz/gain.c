/* Any bytes as a request log or a trace: what is read is replayed through a cache on two tiers. */
#include "replay/assumed.h"
#include "replay/lane.h"

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

/* Every row of a prompt begins where the one before it ends. */
static void check_rows(const struct assumed *a)
{
    for (int i = 0; i < a->trace.n; i++)
        for (int k = a->first[i]; k < a->first[i + 1]; k++)
            if (a->path[k] < 0 || a->path[k] >= a->table.n_contexts ||
                (k > a->first[i] && a->path[k - 1] >= a->path[k]) || a->table.n_tokens[a->path[k]] < a->block_tokens ||
                a->token[i] < 1 || a->trace.request[i].at < 0)
                abort();
}

/* A small cache on two tiers: neither is ever too full, and what is found is part of what there is. */
static void check_lane(struct assumed *a, const struct gain_model *m, int n_gpus)
{
    struct tier tier[] = { { .name = "a", .capacity = 200000, .read_bytes_per_s = 1e9, .write_bytes_per_s = 1e8 },
                           { .name = "b", .capacity = 700000, .read_bytes_per_s = 1e8 } };
    const struct placement_files files = { .table = "log" };
    struct placement_input in = { .tiers = { tier, 2 }, .max_move = INT64_MAX, .kind = QUALITY_RAW };
    struct replay_world world = { .in = &in };
    int64_t *at = calloc((size_t)a->trace.n + 1, sizeof(*at));
    struct lane lane = { .world = &world, .at = at, .n_gpus = n_gpus, .alone = !a->trace.timed, .validate = true };
    struct err err;

    for (int i = 0; i < a->trace.n; i++)
        at[i] = a->trace.request[i].at;
    if (at && placement_input_take(&in, &a->table, &files, &err) == 0) {
        world = assumed_world(a, m, &in);
        if (world_open(&world, 0, &err) == 0 && lane_run(&lane, "lru+3x", &err) == 0) {
            const struct seen_row *o = &lane.outcome;
            double found = o->token_hits[0] + o->token_hits[1];
            if (lane.over > 0 || !(lane.little < 1e-9) || !(found >= 0 && found <= 1 + 1e-9) || !(o->ttft_mean_s > 0))
                abort();
        }
        lane_close(&lane);
        world_close(&world);
    }
    free(at);
    in.tiers = (struct tiers){ 0 };
    placement_input_release(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct requests rq = { .partial = true, .damaged = drop_sentence, .reading = drop_bytes, .read = drop_log };
    static struct gain_log g;
    const struct gain_model m = {
        .gpu = serving_find("H100", NULL, NULL), .kv_token = 1000, .token_s = 1e-5, .pair_s = 1e-9, .unit_tokens = 0.25
    };
    const struct assumed_configs c = { .factor = { 3 }, .quality = { 0.5 }, .n = 1 };
    struct assumed a;
    struct err err;
    char path[32];
    int fd = memfd_create("log", 0);

    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (requests_open(&rq, path, &err) == 0 && gain_log_read(&g, &rq, &err) == 0 &&
        gain_log_stamps(&g, &rq, &err) == 0) {
        const struct gain_stamps *s = &g.stamped;
        if (s->n && !(s->best && s->share >= 0 && s->share <= 1 && s->best->end <= s->best->n_head))
            abort();
        if (assumed_make(&a, &g, &m, &c, &err) == 0) {
            check_rows(&a);
            check_lane(&a, &m, (int)(n % 3) + 1);
        }
        assumed_release(&a);
    }
    gain_log_release(&g);
    requests_close(&rq);
    close(fd);
    return 0;
}
