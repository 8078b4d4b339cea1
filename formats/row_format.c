/* row_format.c - the tensors of row formats, and the formats of configs. */
#include "formats/row_format.h"

#include "formats/config_name.h"

#include <string.h>

struct row_format row_format_of(struct quant_row row)
{
    struct row_format f = { .row = row, .codes = { { "k_codes", "v_codes" }, ST_U8, row.columns } };

    if (row.scale == QUANT_SCALE_TOKEN)
        f.scales = (struct row_tensor){ { "k_scales", "v_scales" }, ST_F16, 1 };
    else if (row.scale == QUANT_SCALE_HEAD)
        f.head = (struct row_tensor){ { "k_scales", "v_scales" }, ST_F32, 1 };
    return f;
}

static enum quant_scale scale_of(const char *word)
{
    if (strcmp(word, "token") == 0)
        return QUANT_SCALE_TOKEN;
    return strcmp(word, "one") == 0 ? QUANT_SCALE_ONE : QUANT_SCALE_HEAD;
}

bool row_format_parse(struct row_format *format, const char *config, int columns)
{
    char value[CONFIG_VALUE];

    if (config_name_value(value, config, "fp8", "scale"))
        *format = row_format_of((struct quant_row){ QUANT_E4M3, columns, scale_of(value) });
    else if (config_name_value(value, config, "arkv", "drop"))
        *format = row_format_of((struct quant_row){ QUANT_E4M3, columns, QUANT_SCALE_TOKEN });
    else
        return false;
    return true;
}
