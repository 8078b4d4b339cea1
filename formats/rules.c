/* rules.c - one row at a time; rows of unknown contexts are checked like the others, then counted. */
#include "formats/rules.h"

#include "base/rows.h"

#include <math.h>
#include <string.h>

struct reading {
    struct rule *rule;
    const struct map *ids;
    int64_t *unknown;
};

static int add_row(void *arg, const struct json *row, struct err *err)
{
    struct reading *r = arg;
    const char *context, *tier = "";
    double floor = (double)NAN, facts = (double)NAN;

    if (json_want_text(row, "context", &context, err) || json_may_real(row, "min_quality", &floor, err) ||
        json_may_real(row, "min_facts", &facts, err) || json_may_text(row, "tier", &tier, err))
        return err->code;
    if (!isnan(floor) && (floor < 0 || floor > 1))
        return err_set(err, ERR_FORMAT, "field 'min_quality' is not between 0 and 1");
    if (!isnan(facts) && (facts < 0 || facts > 1))
        return err_set(err, ERR_FORMAT, "field 'min_facts' is not between 0 and 1");
    if (strlen(tier) >= sizeof(r->rule->tier))
        return err_set(err, ERR_FORMAT, "field 'tier' is longer than %zu bytes", sizeof(r->rule->tier) - 1);
    int at = map_find(r->ids, context, strlen(context));
    if (at == MAP_ABSENT) {
        ++*r->unknown;
        return 0;
    }
    if (!isnan(floor))
        r->rule[at].min_quality = floor;
    if (!isnan(facts))
        r->rule[at].min_facts = facts;
    if (*tier)
        memcpy(r->rule[at].tier, tier, strlen(tier) + 1);
    return 0;
}

int rules_read(struct rule *rule, const char *path, const struct map *ids, int64_t *unknown, struct err *err)
{
    struct reading r = { rule, ids, unknown };

    *unknown = 0;
    return rows_each(path, "rules", add_row, &r, err);
}

int rules_digest(const struct rules_in_order *rules, char hex[DIGEST_HEX], struct err *err)
{
    struct buf text = { 0 };
    int code = 0;

    *hex = '\0';
    for (int i = 0; i < rules->n; i++) {
        const struct rule *r = &rules->rule[rules->order[i]];
        if (r->min_quality > 0 || r->min_facts > 0 || *r->tier)
            buf_printf(&text, "%s\t%.17g\t%.17g\t%s\n", rules->id[rules->order[i]], r->min_quality, r->min_facts,
                       r->tier);
    }
    if (buf_failed(&text))
        code = err_nomem(err);
    else if (text.n > 0)
        code = digest_sha256(text.at, text.n, hex, err);
    buf_release(&text);
    return code;
}
