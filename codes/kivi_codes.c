/* kivi_codes.c - reads the parameters of kivi, int4 and int8 from the text of a config. */
#include "codes/kivi_codes.h"

#include "codes/config_name.h"

#include <stdlib.h>

static int param(const char *config, const char *method, const char *name, int otherwise)
{
    char value[CONFIG_VALUE];

    config_name_value(value, config, method, name);
    return *value ? (int)strtol(value, NULL, 10) : otherwise;
}

static bool has(const char *config, const char *method)
{
    char value[CONFIG_VALUE];

    return config_name_value(value, config, method, "");
}

bool kivi_codes_parse(struct kivi_codes *kivi, const char *config)
{
    static const char name[] = "kivi";
    bool four = has(config, "int4");

    if (four || has(config, "int8")) {
        int group = param(config, four ? "int4" : "int8", "group", 64);
        *kivi = (struct kivi_codes){ four ? 4 : 8, group, 0, true };
        return group > 0 && group % 16 == 0;
    }
    if (!has(config, name))
        return false;
    *kivi = (struct kivi_codes){ param(config, name, "bits", 0), param(config, name, "group", 32),
                                 param(config, name, "residual", 32), false };
    return (kivi->bits == 2 || kivi->bits == 4) && kivi->group > 0 && kivi->group % 32 == 0 && kivi->residual > 0 &&
           kivi->residual % kivi->group == 0;
}
