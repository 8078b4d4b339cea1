/* table.c - a utility table as large as wanted, and tiers for it: what evp-plan reads on a night with many contexts.
 *
 *     table N SEED TABLE.h5 TIERS.json [CONFIGS]
 *
 * N contexts under 60 configs, or CONFIGS of them: instance.h's `real` as files, without questions.
 */
#include "base/digest.h"
#include "base/file.h"
#include "base/rng.h"
#include "profiler/table/table.h"
#include "tests/bench/instance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKEN_BYTES = 128 << 10, UNIT = 64, DROPS = 15, ID_SIZE = 32 };

static void name_config(char name[64], int v)
{
    static const char *const method[] = { "knorm", "keydiff", "snapkv", "kivi:bits=4+snapkv" };
    static const char *const drop[DROPS] = { "0",   "0.05", "0.1",  "0.15", "0.2",  "0.3", "0.4", "0.5",
                                             "0.6", "0.7",  "0.75", "0.8",  "0.85", "0.9", "0.95" };

    snprintf(name, 64, v ? "%s:drop=%s" : "none", method[v / DROPS], drop[v % DROPS]);
}

static int name_context(struct table *t, int i, char *id, char *digest, struct err *err)
{
    static const char *const dataset[] = { "narrativeqa", "qasper", "hotpotqa", "gov_report", "lcc" };

    snprintf(id, ID_SIZE, "%s/%016llx", dataset[i % 5], (unsigned long long)digest_xxh3(&i, sizeof(i)));
    t->context_id[i] = id;
    t->context_token_digest[i] = digest;
    return digest_sha256(id, ID_SIZE, digest, err);
}

/* The instance's config that is the table's config k. */
static int config_of(const struct table *t, int k)
{
    return k * INSTANCE_CONFIGS / t->n_configs;
}

static void fill_context(struct table *t, const struct instance *in, int i, struct rng *r)
{
    double full = (double)in->full[i], tokens = full / TOKEN_BYTES;

    t->n_tokens[i] = (int64_t)tokens;
    t->kv_bytes[i] = in->full[i];
    t->prefill_s[i] = tokens / 8000 + 4e-10 * tokens * tokens;
    t->question_s[i] = .03;
    for (int k = 0; k < t->n_configs; k++) {
        int v = config_of(t, k);
        size_t o = (size_t)i * INSTANCE_CONFIGS + (size_t)v, cell = table_cell(t, i, k);
        double test = (double)in->quality[o] + (v ? .02 * (rng_unit(r) - .5) : 0);
        t->cell_bytes[cell] = (int64_t)in->size[o] * UNIT;
        t->size_frac[cell] = t->keep_frac[cell] = (double)t->cell_bytes[cell] / full;
        t->compress_s[cell] = full / 10e9;
        t->decompress_s[cell] = v >= 3 * DROPS ? full / 40e9 : 0;
        t->quality_train[cell] = (double)in->quality[o];
        t->quality_test[cell] = fmin(fmax(test, 0), 1);
    }
}

static int fill(struct table *t, const struct instance *in, uint64_t seed, struct err *err)
{
    struct rng r = rng_new(seed + 1);
    char *names = calloc(INSTANCE_CONFIGS, 64), *ids = calloc((size_t)in->n, ID_SIZE + DIGEST_HEX);

    if (table_own(t, names, err) || table_own(t, ids, err) || table_set_text(&t->model, "made up", err))
        return err->code;
    for (int k = 0; k < t->n_configs; k++) {
        name_config(names + 64 * k, config_of(t, k));
        t->config_name[k] = names + 64 * k;
    }
    for (int i = 0; i < in->n; i++) {
        char *id = ids + (size_t)i * (ID_SIZE + DIGEST_HEX);
        if (name_context(t, i, id, id + ID_SIZE, err))
            return err->code;
        fill_context(t, in, i, &r);
    }
    return 0;
}

static int write_tiers(const struct instance *in, const char *path, struct err *err)
{
    static const char *const tier[INSTANCE_TIERS] = {
        "\"gpu\",\"read_bytes_per_s\":1e12,\"write_bytes_per_s\":1e12,\"latency_s\":0.001,\"kind\":\"gpu\"",
        "\"dram\",\"read_bytes_per_s\":2e10,\"write_bytes_per_s\":2e10,\"latency_s\":0.003,\"kind\":\"dram\"",
        "\"ssd\",\"read_bytes_per_s\":3e9,\"write_bytes_per_s\":2e9,\"latency_s\":0.01,\"kind\":\"file\"",
        "\"remote\",\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":1e9,\"latency_s\":0.05,\"kind\":\"file\"",
    };
    struct buf b = { 0 };

    buf_adds(&b, "{\"evp\":\"tiers\",\"version\":1,\"tiers\":[");
    for (int t = 0; t < INSTANCE_TIERS; t++) {
        buf_printf(&b, "%s{\"name\":%s,\"uri\":\"/t%d\",\"capacity_bytes\":", t ? "," : "", tier[t], t);
        if (in->capacity[t] == INT64_MAX)
            buf_adds(&b, "null}");
        else
            buf_printf(&b, "%lld}", (long long)in->capacity[t]);
    }
    buf_adds(&b, "]}\n");
    int code = file_write(path, buf_str(&b), b.n, err);
    buf_release(&b);
    return code;
}

static int run(char **argv, struct err *err)
{
    struct instance in;
    struct table t = { 0 };
    uint64_t seed = strtoull(argv[2], NULL, 10);
    int n = (int)strtol(argv[1], NULL, 10);

    if (instance_make(&in, INSTANCE_REAL, n, seed, err))
        return err->code;
    int code = table_alloc(&t, n, argv[5] ? (int)strtol(argv[5], NULL, 10) : INSTANCE_CONFIGS, 0, err);
    if (!code)
        code = table_alloc_scores(&t, 0, err);
    if (!code)
        code = fill(&t, &in, seed, err);
    if (!code)
        code = table_write(&t, argv[3], err);
    if (!code)
        code = write_tiers(&in, argv[4], err);
    table_release(&t);
    instance_release(&in);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;

    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: table N SEED TABLE.h5 TIERS.json [CONFIGS]\n");
        return 2;
    }
    if (run(argv, &err)) {
        fprintf(stderr, "table: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}
