/* kivi_codes.c - reads kivi's parameters from the text of a config. */
#include "formats/kivi_codes.h"

#include "formats/config_name.h"

#include <stdlib.h>

static int param(const char *config, const char *name, int otherwise)
{
    char value[CONFIG_VALUE];

    config_name_value(value, config, "kivi", name);
    return *value ? (int)strtol(value, NULL, 10) : otherwise;
}

bool kivi_codes_parse(struct kivi_codes *kivi, const char *config)
{
    char value[CONFIG_VALUE];

    if (!config_name_value(value, config, "kivi", "bits"))
        return false;
    *kivi = (struct kivi_codes){ param(config, "bits", 0), param(config, "group", 32), param(config, "residual", 32) };
    return (kivi->bits == 2 || kivi->bits == 4) && kivi->group > 0 && kivi->group % 32 == 0 && kivi->residual > 0 &&
           kivi->residual % kivi->group == 0;
}
