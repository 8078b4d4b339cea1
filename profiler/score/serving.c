/* serving.c - figures of GPUs, and the times computed from them. */
#include "profiler/score/serving.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct serving_gpu gpus[] = {
    { "B300", "NVIDIA HGX B300 data sheet, an eighth", 2250e12, 8e12, 128e9, 288e9 },
    { "B200", "NVIDIA HGX B200 data sheet, an eighth", 2250e12, 8e12, 64e9, 180e9 },
    { "GB200", "NVIDIA GB200 NVL72 data sheet, a 72nd; NVLink-C2C to the host", 2500e12, 8e12, 450e9, 186e9 },
    { "H200", "NVIDIA H200 Tensor Core GPU data sheet, SXM", 989e12, 4.8e12, 64e9, 141e9 },
    { "H100", "NVIDIA H100 Tensor Core GPU data sheet, SXM", 989e12, 3.35e12, 64e9, 80e9 },
    { "H100-PCIe", "NVIDIA H100 PCIe GPU product brief", 756e12, 2e12, 64e9, 80e9 },
    { "H20", "NVIDIA H20 data sheet", 148e12, 4e12, 64e9, 96e9 },
    { "A100", "NVIDIA A100 Tensor Core GPU data sheet, 80 GB SXM", 312e12, 2.039e12, 32e9, 80e9 },
    { "L40S", "NVIDIA L40S GPU data sheet", 362e12, 0.864e12, 32e9, 48e9 },
    { "L4", "NVIDIA L4 Tensor Core GPU data sheet", 121e12, 0.3e12, 32e9, 24e9 },
    { "A10", "NVIDIA A10 Tensor Core GPU data sheet", 125e12, 0.6e12, 32e9, 24e9 },
    { "A10G", "NVIDIA A10G Tensor Core GPU data sheet", 70e12, 0.6e12, 32e9, 24e9 },
    { "RTX-PRO-6000", "NVIDIA RTX Blackwell PRO architecture paper, workstation", 503.8e12, 1.792e12, 64e9, 96e9 },
    { "RTX-6000-Ada", "NVIDIA RTX 6000 Ada Generation data sheet", 364.2e12, 0.96e12, 32e9, 48e9 },
    { "RTX-5090", "NVIDIA RTX Blackwell architecture paper", 209.5e12, 1.792e12, 64e9, 32e9 },
    { "RTX-4090", "NVIDIA Ada architecture paper", 165.2e12, 1.008e12, 32e9, 24e9 },
    { "MI355X", "AMD Instinct MI355X data sheet", 2500e12, 8e12, 64e9, 288e9 },
    { "MI325X", "AMD Instinct MI325X data sheet", 1307e12, 6e12, 64e9, 256e9 },
    { "MI300X", "AMD Instinct MI300X data sheet", 1307e12, 5.3e12, 64e9, 192e9 },
};

/* The shares of the peaks that a serving engine is expected to reach. */
static const double prefill_share = 0.5, bandwidth_share = 0.8;

/* A number above 0, and a unit K, M, G or T of powers of 1000, as data sheets have them; *end: what follows. */
static double figure_of(const char *text, const char **end)
{
    static const char units[] = "KMGT";
    char *at;
    double v = strtod(text, &at);
    const char *unit = *at ? strchr(units, toupper((unsigned char)*at)) : NULL;

    for (const char *u = units; unit && u <= unit; u++)
        v *= 1000;
    *end = at + (unit != NULL);
    return at > text && v > 0 && v < 1e20 ? v : 0;
}

/* "tflops=989,memory=80G,bandwidth=3.35T,pcie=64G" */
static int read_figures(const char *text, struct serving_gpu *gpu, struct err *err)
{
    const struct {
        const char *name;
        double *to;
    } part[] = { { "tflops=", &gpu->flop_per_s },
                 { "memory=", &gpu->memory_bytes },
                 { "bandwidth=", &gpu->memory_bytes_per_s },
                 { "pcie=", &gpu->pcie_bytes_per_s } };
    enum { PARTS = sizeof(part) / sizeof(*part), NEEDED = PARTS - 1 };

    *gpu = (struct serving_gpu){ .name = "given", .source = "figures of --gpu", .pcie_bytes_per_s = 64e9 };
    for (const char *at = text; *at;) {
        size_t i = 0;
        while (i < PARTS && strncmp(at, part[i].name, strlen(part[i].name)) != 0)
            i++;
        double v = i < PARTS ? figure_of(at + strlen(part[i].name), &at) : 0;
        if (v == 0 || (*at && *at != ','))
            return err_set(err, ERR_USAGE, "'%.60s' is not tflops=989,memory=80G,bandwidth=3.35T, and perhaps pcie=64G",
                           text);
        *part[i].to = i == 0 ? v * 1e12 : v;
        at += *at == ',';
    }
    for (size_t i = 0; i < NEEDED; i++)
        if (*part[i].to == 0)
            return err_set(err, ERR_USAGE, "'%.60s' lacks %s", text, part[i].name);
    return 0;
}

const struct serving_gpu *serving_find(const char *name, struct serving_gpu *given, struct err *err)
{
    for (size_t i = 0; i < sizeof(gpus) / sizeof(*gpus); i++)
        if (strcasecmp(gpus[i].name, name) == 0)
            return &gpus[i];
    if (strchr(name, '='))
        return read_figures(name, given, err) ? NULL : given;
    err_set(err, ERR_USAGE, "GPU '%s' is not one of %s", name, SERVING_GPUS);
    return NULL;
}

double serving_seconds(const struct serving_gpu *gpu, double flop, double bytes)
{
    return fmax(flop / (prefill_share * gpu->flop_per_s), bytes / (bandwidth_share * gpu->memory_bytes_per_s));
}

double serving_to_device(const struct serving_gpu *gpu)
{
    return bandwidth_share * gpu->pcie_bytes_per_s;
}

/* The prefill time of a context in seconds; < 0: unknown. */
static double prefill_seconds(const struct table *t, int c, const struct serving *s)
{
    if (s->prefill_tokens_per_s > 0)
        return t->n_tokens[c] > 0 ? (double)t->n_tokens[c] / s->prefill_tokens_per_s : -1;
    return t->prefill_flop && !isnan(t->prefill_flop[c]) ? t->prefill_flop[c] / (prefill_share * s->gpu->flop_per_s)
                                                         : -1;
}

static void scale_curve(struct table *t, int c, double by)
{
    for (int i = 0; i < t->n_points && t->curve_s; i++)
        if (t->curve_context[i] == c)
            t->curve_s[i] *= by;
}

static int apply_prefill(struct table *t, int c, const struct serving *s, struct err *err)
{
    double before = t->prefill_s[c], after = prefill_seconds(t, c, s);

    if (after < 0 && s->prefill_tokens_per_s > 0)
        return err_set(err, ERR_FORMAT, "the times of context '%s' are unknown: it has no number of tokens",
                       t->context_id[c]);
    if (after < 0)
        return err_set(err, ERR_FORMAT,
                       "the profile has no operations for the prefill of context '%s'; give --prefill-tokens-per-s",
                       t->context_id[c]);
    if (before > 0) {
        t->question_s[c] *= after / before;
        scale_curve(t, c, after / before);
    }
    t->prefill_s[c] = after;
    t->prefill_n[c] = -1;
    t->prefill_spread[c] = t->question_spread[c] = (double)NAN;
    for (int i = 0; i < t->n_points && t->curve_s; i++) // the last point is exactly the prefill
        if (t->curve_context[i] == c && t->curve_n_tokens[i] == t->n_tokens[c])
            t->curve_s[i] = after;
    return 0;
}

static void apply_decompression(struct table *t, int c, const struct serving_gpu *gpu)
{
    for (int v = 0; v < t->n_configs; v++) {
        size_t i = table_cell(t, c, v);
        if (t->decompress_s[i] > 0 && t->kv_bytes[c] > 0)
            t->decompress_s[i] = ((double)table_bytes_read(t, i) + t->keep_frac[i] * (double)t->kv_bytes[c]) /
                                 (bandwidth_share * gpu->memory_bytes_per_s);
    }
}

void serving_forget_decoding(struct table *t)
{
    for (int b = 0; b < TABLE_BATCHES; b++)
        for (size_t i = 0; i < table_n_cells(t); i++)
            t->decode_s[b][i] = (double)NAN;
}

int serving_apply(struct table *t, const struct serving *s, struct err *err)
{
    for (int c = 0; c < t->n_contexts && (s->gpu || s->prefill_tokens_per_s > 0); c++) {
        if (apply_prefill(t, c, s, err))
            return err->code;
        if (s->gpu)
            apply_decompression(t, c, s->gpu);
    }
    if (s->gpu)
        serving_forget_decoding(t);
    return 0;
}
