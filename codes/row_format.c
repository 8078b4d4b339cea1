/* row_format.c - the tensors of row formats, and the formats of configs. */
#include "codes/row_format.h"

#include "codes/config_name.h"

#include <stdlib.h>
#include <string.h>

struct row_format row_format_of(const struct quant_row *row)
{
    const struct quant_bytes bytes = quant_row_bytes(row);
    struct row_format f = { .codes = { { "k_codes", "v_codes" }, ST_U8, (int)bytes.codes } };

    if (row->format == QUANT_E4M3) {
        f.scales = (struct row_tensor){ { "k_scales", "v_scales" }, ST_F16, bytes.scales ? 1 : 0 };
        f.head = (struct row_tensor){ { "k_scales", "v_scales" }, ST_F32, bytes.head ? 1 : 0 };
    } else if (row->format == QUANT_NVFP4) {
        f.scales = (struct row_tensor){ { "k_scales", "v_scales" }, ST_U8, (int)bytes.scales };
        f.head = (struct row_tensor){ { "k_global_scales", "v_global_scales" }, ST_F32, 1 };
    } else if (row->format == QUANT_LLOYD) {
        f.scales =
            (struct row_tensor){ { "k_norms", "v_norms" }, row->f32_norms ? ST_F32 : ST_F16, row->outliers ? 2 : 1 };
        f.head = (struct row_tensor){ { "k_outliers", "v_outliers" }, ST_U8, (int)bytes.head };
    } else {
        f.scales = (struct row_tensor){ { "k_scales", "v_scales" }, ST_F16, 2 };
    }
    return f;
}

/* Is the method in the config, and its parameter that word? */
static bool is_word(const char *config, const char *method, const char *param, const char *word)
{
    char value[CONFIG_VALUE];

    return config_name_value(value, config, method, param) && strcmp(value, word) == 0;
}

static int number(const char *config, const char *method, const char *param)
{
    char value[CONFIG_VALUE];

    return config_name_value(value, config, method, param) ? (int)strtol(value, NULL, 10) : 0;
}

/* As check() in methods/turboquant.c. */
static bool turboquant(struct quant_pair *pair, const char *config, int columns)
{
    static const char name[] = "turboquant";
    struct quant_row row = { .format = QUANT_LLOYD,
                             .columns = columns,
                             .bits = number(config, name, "bits"),
                             .outliers = number(config, name, "outliers"),
                             .f32_norms = is_word(config, name, "norm", "f32") };
    int rest = columns - row.outliers;

    *pair = (struct quant_pair){ .side = { row, row }, .rotated = is_word(config, name, "rotation", "qr") };
    if (is_word(config, name, "values", "uniform"))
        pair->side[1] = (struct quant_row){ .format = QUANT_UNIFORM, .columns = columns, .bits = row.bits };
    return (row.bits == 3 || row.bits == 4) && (row.outliers == 0 || (row.outliers == 32 && row.bits == 3)) &&
           rest > 0 && columns <= QUANT_WIDTH && columns % 8 == 0 && (pair->rotated || (rest & (rest - 1)) == 0);
}

bool row_format_parse(struct quant_pair *pair, const char *config, int columns)
{
    char value[CONFIG_VALUE];
    struct quant_row row = { .columns = columns };

    if (config_name_value(value, config, "turboquant", ""))
        return turboquant(pair, config, columns);
    if (config_name_value(value, config, "nvfp4", "")) {
        row.format = QUANT_NVFP4;
    } else if (config_name_value(value, config, "fp8", "scale")) {
        row.format = QUANT_E4M3;
        row.scale = strcmp(value, "token") == 0 ? QUANT_SCALE_TOKEN
                    : strcmp(value, "one") == 0 ? QUANT_SCALE_ONE
                                                : QUANT_SCALE_HEAD;
    } else if (config_name_value(value, config, "arkv", "drop")) {
        row.format = QUANT_E4M3;
        row.scale = QUANT_SCALE_TOKEN;
    }
    *pair = (struct quant_pair){ .side = { row, row } };
    return row.format == QUANT_E4M3 || (row.format == QUANT_NVFP4 && columns % QUANT_BLOCK == 0);
}
