/* Sizes of variants, known before anything is computed. */
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct kv_shape llama = { 32, 32, 8, 128, .dtype = DTYPE_F32 },
                             small = { 3, 4, 2, 64, .dtype = DTYPE_F32 };

/* As Python computes int(n * (1 - drop)), with at least one kept. */
Test(methods, keep_as_many_as_kvpress)
{
    static const struct {
        int n;
        double drop;
        int kept;
    } at[] = { { 10, 0.8, 1 },      { 10, 0.9, 1 },    { 100, 0.8, 19 },     { 100, 0.9, 9 },
               { 1000, 0.8, 199 },  { 1000, 0.9, 99 }, { 10000, 0.8, 1999 }, { 10000, 0.9, 999 },
               { 2000, 0.5, 1000 }, { 7, 0, 7 },       { 1, 0.999999, 1 } };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct config c = config_of("knorm:drop=0");
        c.stage[METHOD_DROP].value[0] = at[i].drop;
        cr_assert_eq(config_n_keep(&c, &small, at[i].n, 1), at[i].kept, "%d at %g", at[i].n, at[i].drop);
    }
}

/* What kvpress 0.5.5 gives each layer: the first, the second, the middle one and the last, and all together. Where no
 * pyramid fits, all layers keep the same. */
Test(methods, pyramidkv_keeps_as_many_as_kvpress)
{
    static const struct {
        int n_layers, n;
        const char *config;
        int first, second, middle, last, sum;
    } at[] = {
        { 30, 2068, "pyramidkv:drop=0.1", 2004, 1994, 1856, 1718, 55835 },
        { 30, 2068, "pyramidkv:drop=0.5", 2004, 1937, 1001, 64, 31020 },
        { 30, 2068, "pyramidkv:drop=0.9", 207, 207, 207, 207, 6210 },
        { 30, 2000, "pyramidkv:drop=0.36", 1936, 1891, 1257, 624, 38400 },
        { 4, 101, "pyramidkv:drop=0.5:window=4", 97, 66, 35, 4, 202 },
        { 4, 1000, "pyramidkv:drop=0.5:window=16:beta=5", 900, 633, 367, 100, 2000 },
        { 1, 1000, "pyramidkv:drop=0.5:window=16:beta=5", 900, 900, 900, 900, 900 },
        { 4, 999, "pyramidkv:drop=0.49:window=8", 991, 670, 349, 28, 2038 },
        { 4, 25, "pyramidkv:drop=0.5:window=1:beta=2", 19, 15, 10, 6, 50 },
        { 7, 10000, "pyramidkv:drop=0.7", 5850, 4900, 3000, 150, 21000 },
        { 4, 1000, "pyramidkv:drop=0.999", 1, 1, 1, 1, 4 },
        { 4, 10, "pyramidkv:drop=0.95:window=1", 1, 1, 1, 1, 4 },
        { 3, 1000, "pyramidkv:drop=0.5:window=16:beta=1", 500, 500, 500, 500, 1500 },
        { 5, 100, "pyramidkv:drop=0.255:window=4", 96, 85, 74, 53, 372 },
        { 4, 10, "pyramidkv:drop=0", 10, 10, 10, 10, 40 },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct config c = config_of(at[i].config);
        const struct kv_shape shape = { at[i].n_layers, 4, 2, 64, .dtype = DTYPE_F32 };
        int sum = 0, L1 = at[i].n_layers - 1, one = L1 > 0 ? 1 : 0;
        for (int l = 0; l <= L1; l++)
            sum += config_n_keep(&c, &shape, at[i].n, l);
        cr_assert_eq(sum, at[i].sum, "%s of %d: %d", at[i].config, at[i].n, sum);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, 0), at[i].first, "%s of %d", at[i].config, at[i].n);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, one), at[i].second, "%s of %d", at[i].config, at[i].n);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, (L1 + 1) / 2), at[i].middle, "%s", at[i].config);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, L1), at[i].last, "%s of %d", at[i].config, at[i].n);
        cr_assert_float_eq(config_keep_frac(&c, &shape, at[i].n), sum / (double)(L1 + 1) / at[i].n, 1e-12);
        cr_assert_eq(config_bytes_known(&c, &shape, at[i].n), (int64_t)sum * 2 * 64 * 4);
    }
}

/* Published sizes: original / compressed, at two decimals. */
Test(methods, sizes_are_the_published_ones)
{
    static const struct {
        const char *config;
        int n;
        const char *x;
    } at[] = {
        { "kivi:bits=2", 7964, "5.25" },
        { "kivi:bits=4", 7964, "3.17" },
        { "kivi:bits=4", 65536, "3.20" },
        { "snapkv:drop=0.75", 8000, "4.00" },
        { "none", 5, "1.00" },
        { "nvfp4", 7964, "3.56" },
        { "turboquant:bits=4", 7964, "3.88" },
        { "turboquant:bits=3", 7964, "5.12" },
        { "turboquant:bits=4:rotation=qr:norm=f32", 7964, "3.76" }, // the table by OmarHory's code
        { "turboquant:bits=3:rotation=qr:norm=f32:outliers=32", 7964, "4.27" },
        { "turboquant:bits=4:values=uniform", 7964, "3.82" }, // LMCache's, without layers in full
        { "turboquant:bits=3:values=uniform", 7964, "5.02" },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct config c = config_of(at[i].config);
        char x[16];
        snprintf(x, sizeof(x), "%.2f",
                 (double)kv_bytes(&llama, at[i].n) / (double)config_bytes_known(&c, &llama, at[i].n));
        cr_assert_str_eq(x, at[i].x, "%s at %d", at[i].config, at[i].n);
    }
    cr_assert_eq(kv_bytes(&llama, 1000), 131072000);
}

/* What a config cannot make of a model's heads. */
Test(methods, refuse_heads_that_they_cannot_pack)
{
    static const struct {
        const char *config;
        int head_dim;
        const char *said; // NULL: it can
    } at[] = {
        { "turboquant:bits=4", 80,
          "config 'turboquant:bits=4': turboquant: rotation=wht needs a power of two, and the "
          "model's head_dim is 80; rotation=qr takes it" },
        { "turboquant:bits=4:rotation=qr", 80, NULL },
        { "turboquant:bits=4:rotation=qr", 84, "head_dim 84 is not a multiple of 8 from 8 to 256" },
        { "turboquant:bits=4", 256, NULL },
        { "turboquant:bits=4", 512, "head_dim 512 is not a multiple of 8 from 8 to 256" },
        { "turboquant:bits=3:outliers=32", 128, "head_dim is 128, of which 32 are outliers; rotation=qr takes it" },
        { "turboquant:bits=3:outliers=32", 64, NULL },
        { "turboquant:bits=3:outliers=32", 32, "head_dim 32 is not a multiple of 8 from 40 to 256" },
        { "nvfp4", 80, NULL },
        { "nvfp4", 72, "config 'nvfp4': nvfp4: the model's head_dim 72 is not a multiple of 16" },
        { "int4", 80, "config 'int4': int4: the model's head_dim 80 is not a multiple of group=64" },
        { "int8:group=16", 80, NULL },
        { "fp8", 72, NULL },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct kv_shape shape = { 1, 2, 2, at[i].head_dim, .dtype = DTYPE_F32 };
        const struct config c = config_of(at[i].config);
        struct err err = { 0 };
        cr_assert_eq(config_check(&c, &shape, &err), at[i].said ? ERR_USAGE : 0, "%s: %s", at[i].config, err.msg);
        cr_assert(!at[i].said || strstr(err.msg, at[i].said), "%s", err.msg);
    }
}

/* Bytes of a head of n tokens, keys and values, under each quantiser of rows. */
Test(methods, sizes_of_row_formats)
{
    static const struct {
        const char *config;
        int head_dim, bytes, of_head; // of two rows; of a head besides
    } at[] = {
        { "fp8", 64, 128, 8 },
        { "fp8", 80, 160, 8 },
        { "fp8", 128, 256, 8 },
        { "int8", 64, 136, 0 },
        { "int8:group=16", 80, 200, 0 },
        { "int4", 128, 144, 0 },
        { "int4:group=32", 64, 80, 0 },
        { "int4:group=16", 80, 120, 0 },
        { "nvfp4", 64, 72, 8 },
        { "nvfp4", 80, 90, 8 },
        { "nvfp4", 128, 144, 8 },
        { "turboquant:bits=4", 64, 68, 0 },
        { "turboquant:bits=4:rotation=qr", 80, 84, 0 },
        { "turboquant:bits=4", 128, 132, 0 },
        { "turboquant:bits=3", 128, 100, 0 },
        { "turboquant:bits=4:values=uniform", 128, 134, 0 },
        { "turboquant:bits=3:rotation=qr:outliers=32:norm=f32", 128, 120, 64 },
        { "fp8:scale=token", 64, 132, 0 },
        { "fp8:scale=token", 80, 164, 0 },
        { "fp8:scale=one", 128, 256, 0 },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct kv_shape shape = { 5, 8, 4, at[i].head_dim, .dtype = DTYPE_F32 };
        const struct config c = config_of(at[i].config);
        struct err err;
        cr_assert_eq(config_check(&c, &shape, &err), 0, "%s", err.msg);
        cr_assert_eq(config_bytes_known(&c, &shape, 1001), 5 * 4 * (1001 * at[i].bytes + at[i].of_head), "%s",
                     at[i].config);
    }
}

/* keys Tq K b/8 + Tq/g K 4 + (n-Tq) 2K, values likewise, over the kept tokens. */
Test(methods, chains_quantise_what_was_kept)
{
    struct config c = config_of("snapkv:drop=0.5+kivi:bits=4");
    int n = 1005; // of 2010; keys: 992 packed, 13 full; values: 973 packed, 32 full
    int64_t head = (992 + 973) * (64 / 2) + (992 + 973) * 2 * 4 + (13 + 32) * 128;

    cr_assert_eq(config_n_keep(&c, &small, 2010, 0), n);
    cr_assert_eq(config_bytes_known(&c, &small, 2010), 6 * head);
}

/* Heads that share a budget keep together what they would keep apart; each has a length of 4 bytes. What a quantiser
 * makes of them depends on the lengths. */
Test(methods, sizes_of_ragged_heads_are_known_until_they_are_packed)
{
    const struct config ada = config_of("adakv+snapkv:drop=0.5"), snap = config_of("snapkv:drop=0.5"),
                        packed = config_of("adakv+snapkv:drop=0.5+kivi:bits=4"), coded = config_of("cachegen");

    cr_assert(ada.ragged && packed.ragged && !snap.ragged);
    cr_assert_eq(config_bytes_known(&ada, &llama, 2010), config_bytes_known(&snap, &llama, 2010) + 32 * 8 * 4);
    cr_assert_eq(config_bytes_known(&packed, &llama, 2010), -1);
    cr_assert_eq(config_bytes_known(&coded, &llama, 2010), -1); // on the numbers of any head
    cr_assert_eq(config_keep_frac(&packed, &llama, 2010), 0.5);
}

/* Of all pairs, or of a layer's, (int)(pairs * drop) go, in double: as many as kvpress masks. */
Test(methods, kvzip_drops_as_many_as_kvpress)
{
    static const struct {
        const char *config;
        int n;
        int64_t first, all; // kept of what shares; of all layers
    } at[] = { { "kvzip:drop=0.1", 2067, 167427, 167427 },
               { "kvzip:drop=0.9", 2067, 18603, 18603 },
               { "kvzip:drop=0.1:over=layer", 2067, 5581, 167430 },
               { "kvzip:drop=0.9:over=layer:prefix=kvpress", 2067, 621, 18630 },
               { "kvzip:drop=0.7", 10, 270, 270 },
               { "kvzip:drop=0.7:over=layer", 10, 9, 270 },
               { "kvzip:drop=0", 7, 630, 630 },
               { "kvzip:drop=0.999999", 1, 1, 1 },
               { "kvzap:drop=0.9", 2067, 18603, 18603 } };
    const struct kv_shape shape = { 30, 9, 3, 64, .dtype = DTYPE_F32 };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct config c = config_of(at[i].config), packed = config_of("kvzip:drop=0.5+kivi:bits=4");
        bool layer = strstr(at[i].config, "layer");
        struct config_share share = config_share(&c, &shape, at[i].n, 0);
        cr_assert(share.layers == (layer ? 1 : 30) && share.pairs == at[i].first && share.floor == 0, "%s: %lld",
                  at[i].config, (long long)share.pairs);
        cr_assert_float_eq(config_keep_frac(&c, &shape, at[i].n), (double)at[i].all / 90 / at[i].n, 1e-12);
        cr_assert_eq(config_bytes_known(&c, &shape, at[i].n), at[i].all * 256 + 90 * 4);
        cr_assert(c.ragged && config_bytes_known(&packed, &shape, at[i].n) == -1);
    }
}

/* The tensors of two heads with 100 and 33 tokens. */
Test(methods, ragged_tensors_have_their_heads_one_after_another)
{
    const struct config ada = config_of("adakv+snapkv:drop=0.5+kivi:bits=4");
    const struct layer_lengths lengths = { 1, (const int[]){ 100, 33 }, 0, 0 };
    static const struct {
        const char *name;
        int n_dims;
        int64_t dim[2];
    } want[] = { { "k", 2, { 4 + 1, 64 } },
                 { "k_codes", 1, { (96 + 32) * 64 / 8, 0 } },
                 { "k_scales", 1, { (96 + 32) * 64 / 32, 0 } },
                 { "k_zeros", 1, { (96 + 32) * 64 / 32, 0 } },
                 { "v", 2, { 32 + 32, 64 } },
                 { "v_codes", 1, { (68 + 1) * 64 / 8, 0 } },
                 { "v_scales", 1, { (68 + 1) * 64 / 32, 0 } },
                 { "v_zeros", 1, { (68 + 1) * 64 / 32, 0 } },
                 { "lengths", 1, { 2, 0 } } };
    struct packed_part part[PART_MAX];

    cr_assert_eq(config_parts(&ada, &small, &lengths, part), 9);
    for (int i = 0; i < 9; i++) {
        cr_assert(strcmp(part[i].name, want[i].name) == 0 && part[i].n_dims == want[i].n_dims, "%s", part[i].name);
        cr_assert(part[i].dim[0] == want[i].dim[0] && part[i].dim[1] == want[i].dim[1], "%s", part[i].name);
    }
}

/* The tensors of two heads: 600 tokens are three chunks, 33 one. Of the streams' bytes only the most are known: two for
 * each symbol, and one for each stream. */
Test(methods, cachegen_has_a_stream_for_each_channel_and_chunk)
{
    const struct config config[] = { config_of("cachegen"), config_of("cachegen:cdf=chunk") };
    const struct kv_shape shape = { 12, 4, 2, 64, .dtype = DTYPE_F32 };
    static const char *const name[] = { "k",        "v",         "k_streams", "k_sizes", "k_cdfs",
                                        "k_maxima", "v_streams", "v_sizes",   "v_cdfs",  "v_maxima" };
    struct packed_part part[PART_MAX];

    for (int i = 0; i < 4; i++) {
        const struct layer_lengths lengths = { i < 2 ? 2 : 10, (const int[]){ 600, 33 }, 0, 0 };
        int64_t cdfs = i % 2 ? 4 * 64 : 2 * 64;
        cr_assert_eq(config_parts(&config[i % 2], &shape, &lengths, part), 10);
        for (int j = 0; j < 10; j++)
            cr_assert(strcmp(part[j].name, name[j]) == 0 && part[j].at_most == (j == 2 || j == 6), "%s", part[j].name);
        cr_assert(part[2].dim[0] == 2 * 64 * 633 + 4 * 64 && part[6].dim[0] == part[2].dim[0]);
        cr_assert(part[3].dim[0] == 4 * 64 / 2 && part[5].dim[0] == 600 && part[4].dim[0] == cdfs);
        cr_assert(part[4].dim[1] == (i < 2 ? 15 : 7) && part[8].dim[1] == 7); // values have 32 bins up to layer 1
    }
}

Test(methods, cachegen_takes_even_heads)
{
    const struct config config = config_of("cachegen");
    const struct kv_shape odd = { 2, 2, 2, 63, .dtype = DTYPE_F32 };
    struct err err;

    cr_assert_eq(config_check(&config, &small, &err), 0);
    cr_assert_eq(config_check(&config, &odd, &err), ERR_USAGE);
    cr_assert_str_eq(err.msg, "config 'cachegen': cachegen: the model's head_dim 63 is not even");
}

/* Rows packed of n tokens, around the residual of 32. */
Test(methods, kivi_packs_from_its_residual_on)
{
    static const struct {
        int n, keys, values;
    } at[] = {
        { 1, 0, 0 }, { 31, 0, 0 }, { 32, 32, 0 }, { 33, 32, 1 }, { 63, 32, 31 }, { 64, 64, 32 }, { 65, 64, 33 }
    };
    struct config c = config_of("kivi:bits=4");
    struct packed_part part[PART_MAX];

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const int n[] = { at[i].n, at[i].n };
        cr_assert_eq(config_parts(&c, &small, &(struct layer_lengths){ 0, n, 0, 0 }, part), 8);
        cr_assert_eq(part[0].dim[1], at[i].n - at[i].keys, "%d tokens", at[i].n);
        cr_assert_eq(part[1].dim[2], at[i].keys / 8, "%d tokens", at[i].n);
        cr_assert_eq(part[4].dim[1], at[i].n - at[i].values, "%d tokens", at[i].n);
        cr_assert_eq(part[5].dim[1], at[i].values, "%d tokens", at[i].n);
    }
}

/* libevicpress knows the same methods and parameters by name alone. */
