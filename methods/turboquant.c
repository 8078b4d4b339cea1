/* turboquant - 3- or 4-bit quantisation of rotated keys and values, with a codebook for normal numbers.
 *
 * Of a row x with K channels, keys and values alike:
 *     norm = |x|, stored in f16; y = sqrt(K) R x / norm, R a rotation: channels are about N(0, 1) then
 *     code of each channel: the nearest of the 2^bits levels c of a Lloyd-Max quantiser of N(0, 1)
 *     x becomes norm * R^-1 c / |c|
 * R is random signs and a Walsh-Hadamard transform; K must be a power of two. No row is kept in full.
 *     rotation=qr: R is the Q of a Gaussian matrix' QR decomposition, for any K
 *     norm=f32: the norm in f32, and x becomes norm * R^-1 c / sqrt(K): levels are not scaled to the norm
 *     outliers=32, with bits=3: the 32 channels of a head with the largest sums of squares have 4 bits, the others 3;
 *     the two have rotations and norms of their own
 *     values=uniform: values as code * scale + zero, scale and zero of each row in f16, zero the least number
 * The rotations are the same for all layers, heads and models. At most 256 channels, a multiple of 8.
 *
 * Bytes per layer and kv head, b = bits: keys n*(K*b/8 + 2); with norm=f32 n*(K*b/8 + 4); with outliers n*(K*b/8 + 4),
 * a norm more, and 32; values likewise, with values=uniform n*(K*b/8 + 4).
 *
 * Source: Zandieh et al., "TurboQuant" (2025), its quantiser of least mean square error. Defaults as in vLLM and
 * LMCache, but for values, which are uniform there, the first and last two layers, which they keep in full, and the
 * signs, which they draw for each layer. rotation=qr:norm=f32 is the code by which github.com/OmarHory/turboquant was
 * compared, with outliers=32 at 3 bits; it chooses outliers for all heads together, and by the keys for the values too.
 * The paper's second quantiser, which corrects inner products by the signs of residuals, is in neither.
 */
#include "codes/quant_rotation.h"
#include "methods/registry.h"

enum { BITS, ROTATION, OUTLIERS, NORM, VALUES_AS };
enum { WHT, QR };
enum { NORM_F16, NORM_F32 };
enum { MSE, UNIFORM };

static bool is_power_of_two(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static int check(const double *value, int head_dim, struct err *err)
{
    int outliers = (int)value[OUTLIERS], rest = head_dim - outliers;

    if (outliers && value[BITS] != 3)
        return err_set(err, ERR_USAGE, "outliers=%d needs bits=3: outliers have one bit more, and at most 4", outliers);
    if (head_dim == 0)
        return 0;
    if (head_dim > QUANT_WIDTH || head_dim % 8 || rest <= 0)
        return err_set(err, ERR_USAGE, "the model's head_dim %d is not a multiple of 8 from %d to %d", head_dim,
                       outliers + 8, QUANT_WIDTH);
    if (value[ROTATION] == WHT && !is_power_of_two(rest))
        return err_set(err, ERR_USAGE,
                       "rotation=wht needs a power of two, and the model's head_dim is %d%s; rotation=qr takes it",
                       head_dim, outliers ? ", of which 32 are outliers" : "");
    return 0;
}

static struct quant_pair rows_of(const double *value, int head_dim)
{
    const struct quant_row row = { .format = QUANT_LLOYD,
                                   .columns = head_dim,
                                   .bits = (int)value[BITS],
                                   .outliers = (int)value[OUTLIERS],
                                   .f32_norms = value[NORM] == NORM_F32 },
                           uniform = { .format = QUANT_UNIFORM, .columns = head_dim, .bits = row.bits };

    return (struct quant_pair){ .side = { row, value[VALUES_AS] == UNIFORM ? uniform : row },
                                .rotated = value[ROTATION] == QR };
}

static float *constants(const double *value, int head_dim)
{
    const struct quant_pair pair = rows_of(value, head_dim);

    return quant_rotation_new(&pair.side[KEYS]);
}

static const double bits_allowed[] = { 3, 4, (double)NAN }, outliers_allowed[] = { 0, 32, (double)NAN };
static const char *const rotations[] = { [WHT] = "wht", [QR] = "qr", NULL };
static const char *const norms[] = { [NORM_F16] = "f16", [NORM_F32] = "f32", NULL };
static const char *const values[] = { [MSE] = "mse", [UNIFORM] = "uniform", NULL };

const struct method method_turboquant = {
    .name = "turboquant",
    .summary = "rotates keys and values, and quantises to a codebook",
    .source = "Zandieh et al. 2025 (arXiv 2504.19874), LMCache's and OmarHory's turboquant",
    .param = { { .name = "bits",
                 .min = 3,
                 .max = 4,
                 .otherwise = (double)NAN,
                 .only = bits_allowed,
                 .help = "bits per number" },
               { .name = "rotation",
                 .otherwise = WHT,
                 .words = rotations,
                 .help = "random signs and a Walsh-Hadamard transform, or a random orthogonal matrix" },
               { .name = "outliers",
                 .min = 0,
                 .max = 32,
                 .otherwise = 0,
                 .only = outliers_allowed,
                 .help = "channels of a head with one bit more" },
               { .name = "norm",
                 .otherwise = NORM_F16,
                 .words = norms,
                 .help = "format of a row's norm: f16, to which levels are scaled, or f32, and they are not" },
               { .name = "values",
                 .otherwise = MSE,
                 .words = values,
                 .help = "values like keys, or in uniform steps without a rotation" } },
    .check = check,
    .pack = &(const struct method_pack){ .rows = rows_of, .constants = constants },
};
