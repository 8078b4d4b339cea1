#include "datasets/rules.h"

#include "base/rows.h"

#include <string.h>

static int add_row(struct rule *rule, const struct json *row, const struct map *ids, int64_t *unknown, struct err *err)
{
    const char *context, *tier = "";
    double floor = -1;

    if (json_want_text(row, "context", &context, err) || json_may_real(row, "min_quality", &floor, err) ||
        json_may_text(row, "tier", &tier, err))
        return err->code;
    if (json_get(row, "min_quality") && (floor < 0 || floor > 1))
        return err_set(err, ERR_FORMAT, "field 'min_quality' is not between 0 and 1");
    if (strlen(tier) >= sizeof(rule->tier))
        return err_set(err, ERR_FORMAT, "field 'tier' is longer than %zu bytes", sizeof(rule->tier) - 1);
    int at = map_find(ids, context, strlen(context));
    if (at == MAP_ABSENT) {
        ++*unknown;
        return 0;
    }
    if (floor >= 0)
        rule[at].min_quality = floor;
    if (*tier)
        memcpy(rule[at].tier, tier, strlen(tier) + 1);
    return 0;
}

int rules_read(struct rule *rule, const char *path, const struct map *ids, int64_t *unknown, struct err *err)
{
    struct rows_in in;
    struct json *row;
    int got;

    *unknown = 0;
    if (rows_open(&in, path, "rules", err))
        return err->code;
    while ((got = rows_next(&in, &row, err)) == 1) {
        int code = add_row(rule, row, ids, unknown, err);
        json_free(row);
        if (code) {
            got = rows_wrap(&in, err);
            break;
        }
    }
    rows_close(&in);
    return got;
}
