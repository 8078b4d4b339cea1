/* make-load MANIFEST PAYLOADS <PLAN - a manifest and its payloads for tests of the loader, without a model.
 *
 * PLAN has a line per tier, then a line per context; with a line of variants, rows carry those as evp-plan --online
 * does:
 *
 *     tier NAME KIND URI[,STATE] CAPACITY|-
 *     variants CONFIG CONFIG|- CONFIG|- CONFIG|-
 *     ids FILE - - -
 *     model NAME LAYERS HEADS HEAD_DIM
 *     context ID N_TOKENS CONFIG TIER|recompute
 *
 * Payloads are real ones of a model with one layer and one head of 64, full of bytes made from the id; those already
 * there are left alone, as evp-pack does. After a line `model` they are of that shape, and say so and the name. Token i
 * of a context is 1000 * (first letter of the id) + i, so contexts with the same first letter are prefixes of each
 * other; after a line `ids` they come from FILE, and so do the bytes: then contexts of one length have the same
 * payload. With FILE `own` the first token is made from the whole id. `none` counts 256 bytes a token.
 */
#include "base/rng.h"
#include "formats/manifest.h"
#include "variants/packed_payload.h"
#include "variants/payload_cache.h"
#include "variants/sizes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char model_digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static struct kv_shape shape = { .n_layers = 1, .n_heads = 1, .n_kv_heads = 1, .head_dim = 64, .dtype = DTYPE_F32 };
static const char *model_name; // NULL: payloads do not say
enum { LAYERS_MAX = 8, HEADS_MAX = 16 };

static void must(int code, const struct err *err)
{
    if (!code)
        return;
    fprintf(stderr, "make-load: %s\n", err->msg);
    exit(1);
}

static char ids_file[1024]; // "": ids are made from the context's

static bool ids_are_given(void)
{
    return *ids_file && strcmp(ids_file, "own") != 0;
}

static int32_t *make_ids(const char *id, int n)
{
    int32_t *ids = malloc((size_t)n * sizeof(*ids));
    bool own = strcmp(ids_file, "own") == 0, given = ids_are_given();
    FILE *f = given ? fopen(ids_file, "r") : NULL;

    for (int i = 0; i < n; i++) {
        ids[i] = 1000 * id[0] + i;
        if (given && (!f || fscanf(f, "%" SCNd32, &ids[i]) != 1))
            exit(2);
    }
    if (own)
        ids[0] = (int32_t)(digest_xxh3(id, strlen(id)) & INT32_MAX);
    if (f)
        fclose(f);
    return ids;
}

static void digest_context(const char *id, int n, char hex[DIGEST_HEX])
{
    int32_t *ids = make_ids(id, n);
    struct err err;

    must(digest_tokens(ids, n, hex, &err), &err);
    free(ids);
}

/* The tokens and the tensors of all layers, with their bytes; positions are 0, 1, 2 ... */
static int fill_tensors(const struct config *config, int n_tokens, const char *id, struct st_tensor *tensor,
                        void **bytes)
{
    static char name[LAYERS_MAX * LAYOUT_MAX][TENSOR_NAME];
    struct packed_part part[LAYOUT_MAX];
    const int n_kept = config_n_keep(config, &shape, n_tokens, 0);
    int lengths[HEADS_MAX];

    for (int h = 0; h < shape.n_kv_heads; h++)
        lengths[h] = n_kept;
    int n = packed_payload_layout(config, &shape, &(struct layer_lengths){ 0, lengths, 0, n_tokens }, part);
    struct rng rng = rng_named(7, ids_are_given() ? ids_file : id);

    tensor[0] = payload_tokens(n_tokens);
    tensor[0].bytes = (uint64_t)n_tokens * sizeof(int32_t);
    bytes[0] = make_ids(id, n_tokens);
    for (int i = 1; i <= n * shape.n_layers; i++) {
        const struct packed_part *p = &part[(i - 1) % n];
        tensor[i] = packed_payload_tensor((i - 1) / n, p, name[i - 1]);
        tensor[i].bytes = packed_part_bytes(p);
        bytes[i] = malloc(tensor[i].bytes);
        for (size_t k = 0; k < tensor[i].bytes; k++)
            ((char *)bytes[i])[k] = (char)rng_next(&rng);
        for (int k = 0; strcmp(p->name, "positions") == 0 && k < n_kept * shape.n_kv_heads; k++)
            memcpy((char *)bytes[i] + 4 * k, &(int){ k % n_kept }, 4);
        if (strcmp(p->name, "lengths") == 0)
            memcpy(bytes[i], lengths, (size_t)shape.n_kv_heads * sizeof(*lengths));
    }
    return 1 + n * shape.n_layers;
}

static void write_payload(const char *path, const struct config *config, const char *id, int n_tokens)
{
    struct st_tensor tensor[1 + LAYERS_MAX * LAYOUT_MAX];
    void *bytes[1 + LAYERS_MAX * LAYOUT_MAX];
    char digest[DIGEST_HEX], sum[1 + LAYERS_MAX * LAYOUT_MAX][XXH3_HEX];
    struct payload_model model = { .name = model_name,
                                   .dtype = "bfloat16",
                                   .rope = { 10000, shape.head_dim, "default", 0, 0, 0, 0 } };
    struct buf cache = { 0 };
    struct payload_made made = { .config = config->name,
                                 .model_digest = model_digest,
                                 .token_digest = digest,
                                 .n_tokens = n_tokens,
                                 .tensor = tensor,
                                 .checksum = sum };
    struct file_out out = { .f = fopen(path, "wb") }; // nobody needs it flushed
    struct err err;

    if (!out.f)
        exit(1);
    if (model_name) {
        payload_cache_put(&cache, &shape, &model);
        made.origin = (struct payload_origin){ .model_name = model_name, .cache = cache.at };
    }
    made.n = fill_tensors(config, n_tokens, id, tensor, bytes);
    digest_context(id, n_tokens, digest);
    for (int i = 0; i < made.n; i++)
        digest_xxh3_hex(bytes[i], tensor[i].bytes, sum[i]);
    must(payload_write_header(&out, &made, &err), &err);
    for (int i = 0; i < made.n; i++) {
        fwrite(bytes[i], 1, tensor[i].bytes, out.f);
        free(bytes[i]);
    }
    buf_release(&cache);
    if (fclose(out.f))
        exit(1);
}

/* A line `model`. */
static void set_model(char *word[4])
{
    model_name = strdup(word[0]);
    shape.n_layers = (int)strtol(word[1], NULL, 10);
    shape.n_heads = shape.n_kv_heads = (int)strtol(word[2], NULL, 10);
    shape.head_dim = (int)strtol(word[3], NULL, 10);
    if (shape.n_layers < 1 || shape.n_layers > LAYERS_MAX || shape.n_heads < 1 || shape.n_heads > HEADS_MAX)
        exit(2);
}

/* The variants of PLAN, of falling quality, for so many tokens. */
static struct variants make_variants(struct config *config, int n, struct variant_info *variant, int n_tokens)
{
    for (int i = 0; i < n; i++)
        variant[i] =
            (struct variant_info){ config[i].name, config_bytes_known(&config[i], &shape, n_tokens), 1 - 0.125 * i, 0 };
    return (struct variants){ .at = variant, .n = n, .prefill_s = 0.01 * n_tokens };
}

static void add_context(struct manifest *m, const char *payloads, char *word[4], struct config *variant_config,
                        int n_variants)
{
    struct variant_info variant[4];
    char digest[DIGEST_HEX], *payload = NULL;
    struct config config;
    struct err err;
    int n_tokens = (int)strtol(word[1], NULL, 10), tier = tiers_find(&m->tiers, word[3]);

    must(config_parse(&config, tier < 0 ? "none" : word[2], &err), &err);
    digest_context(word[0], n_tokens, digest);
    if (tier >= 0) {
        payload = manifest_payload_name(word[0], digest, config.name);
        char *path = file_join(payloads, payload);
        if (!file_exists(path))
            write_payload(path, &config, word[0], n_tokens);
        free(path);
    }
    struct placement p = { .id = word[0],
                           .token_digest = digest,
                           .config = config.name,
                           .payload = payload,
                           .tier = tier,
                           .n_tokens = n_tokens,
                           .quality = 1,
                           .quality_test = (double)NAN,
                           .ttft_s = 0.5,
                           .frequency = 1,
                           .operation = tier < 0 ? OP_NONE : OP_INSERT };
    p.bytes = tier < 0 ? 0 : config_bytes_known(&config, &shape, n_tokens);
    struct variants variants = make_variants(variant_config, n_variants, variant, n_tokens);
    p.variants = n_variants ? &variants : NULL;
    if (tier >= 0 && n_variants && variants_find(&variants, config.name))
        p.quality = variants_find(&variants, config.name)->quality;
    must(manifest_add(m, &p, &err), &err);
    free(payload);
}

static void add_tier(struct manifest *m, char *word[4])
{
    struct tier *t = &m->tiers.at[m->tiers.n++];
    struct err err;

    *t = (struct tier){ .read_bytes_per_s = 1e9, .write_bytes_per_s = 1e9 };
    must(tier_set_name(t, word[0], &err), &err);
    char *state = strchr(word[2], ',');
    if (!tier_kind_find(word[1], &t->kind))
        exit(2);
    if (state) {
        *state++ = '\0';
        must(tier_set_state(t, state, &err), &err);
    }
    must(tier_set_uri(t, word[2], &err), &err);
    t->capacity = word[3][0] == '-' ? INT64_MAX : strtoll(word[3], NULL, 10);
}

int main(int argc, char **argv)
{
    struct manifest m = { .alpha = 1, .solver = "test", .upper_bound = (double)NAN, .gap = (double)NAN };
    char line[4096], what[16], w[4][1024];
    struct config variant[4];
    int n_variants = 0;
    struct err err;

    if (argc != 3)
        return 2;
    m.tiers.at = calloc(TIER_MAX, sizeof(*m.tiers.at));
    memcpy(m.model_digest, model_digest, sizeof(model_digest));
    must(file_mkdir(argv[2], &err), &err);
    while (fgets(line, sizeof(line), stdin)) {
        char *word[4] = { w[0], w[1], w[2], w[3] };
        if (sscanf(line, "%15s %1023s %1023s %1023s %1023s", what, w[0], w[1], w[2], w[3]) != 5)
            continue;
        if (strcmp(what, "tier") == 0)
            add_tier(&m, word);
        else if (strcmp(what, "ids") == 0)
            memcpy(ids_file, w[0], sizeof(ids_file));
        else if (strcmp(what, "model") == 0)
            set_model(word);
        else if (strcmp(what, "context") == 0)
            add_context(&m, argv[2], word, variant, n_variants);
        for (int i = 0; i < 4 && strcmp(what, "variants") == 0; i++)
            if (strcmp(word[i], "-") != 0)
                must(config_parse(&variant[n_variants++], word[i], &err), &err);
    }
    must(manifest_write(&m, argv[1], (struct rows_made){ .tool = "make-load" }, &err), &err);
    manifest_release(&m);
    return 0;
}
