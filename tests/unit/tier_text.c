/* What --tier takes: every key, units, and one sentence for each way to be wrong. */
#include "formats/tier_text.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void release(struct tier_text *t)
{
    struct tiers one = { malloc(sizeof(t->tier)), 1 };

    cr_assert(one.at);
    *one.at = t->tier;
    tiers_release(&one);
}

Test(tier_text, takes_every_key)
{
    struct tier_text t;
    struct err err;

    cr_assert_eq(tier_text_read(&t,
                                " name = far , uri=redis://a,kind=redis,capacity=2 GB,read=1G,write=512M,latency=2 ms,"
                                "pool=p,configs=none/kivi:bits=2,state=/srv/far",
                                &err),
                 0, "%s", err.msg);
    cr_assert_str_eq(t.tier.name, "far");
    cr_assert_str_eq(t.tier.uri, "redis://a");
    cr_assert_str_eq(t.tier.pool, "p");
    cr_assert_str_eq(t.tier.state, "/srv/far");
    cr_assert(t.tier.kind == TIER_REDIS && t.kind && t.read && t.write && t.latency && t.share == 0);
    cr_assert(t.tier.capacity == (int64_t)2 << 30 && t.tier.latency_s == 0.002);
    cr_assert(t.tier.read_bytes_per_s == 0x1p30 && t.tier.write_bytes_per_s == 0x1p29);
    cr_assert_eq(t.tier.n_configs, 2);
    cr_assert_str_eq(t.tier.config[1], "kivi:bits=2");
    release(&t);
}

Test(tier_text, what_is_not_given_is_known)
{
    struct tier_text t;
    struct err err;

    cr_assert_eq(tier_text_read(&t, "name=a,uri=/x,capacity=25%", &err), 0, "%s", err.msg);
    cr_assert(t.tier.kind == TIER_FILE && !t.kind && !t.read && !t.write && !t.latency);
    cr_assert(t.tier.capacity == INT64_MAX && t.share == 0.25);
    release(&t);
    cr_assert_eq(tier_text_read(&t, "name=a,uri=rediss://x,state=/s", &err), 0, "%s", err.msg);
    cr_assert(t.tier.kind == TIER_REDIS && t.tier.capacity == INT64_MAX && t.share == 0 && !t.tier.read_only);
    release(&t);
    cr_assert_eq(tier_text_read(&t, "name=a,uri=/x,access=read", &err), 0, "%s", err.msg);
    cr_assert(t.tier.read_only);
    release(&t);
}

Test(tier_text, refuses_the_rest)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "", "'' is not one of name=, uri=" },
        { "name=a", "uri= is missing" },
        { "uri=/x", "name= is missing" },
        { "name=a,uri=/x,size=3", "'size=3' is not one of" },
        { "name=a,uri=/x,capacity", "'capacity' is not one of" },
        { "name=a,name=b,uri=/x", "name= is given twice" },
        { "name=a,uri=/x,kind=tape", "'kind=tape' is not one of gpu, dram" },
        { "name=a,uri=/x,capacity=0%", "'capacity=0%' is not above 0" },
        { "name=a,uri=/x,capacity=101%", "'capacity=101%' is not above 0" },
        { "name=a,uri=/x,capacity=x%", "'capacity=x%' is not above 0" },
        { "name=a,uri=/x,read=fast", "'read=fast' is not a size" },
        { "name=a,uri=/x,access=none", "access 'none' is not read" },
        { "name=a,uri=/x,latency=1m", "'latency=1m' is not a number of seconds" },
        { "name=recompute,uri=/x", "recompute" },
    };
    struct tier_text t;
    struct err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(tier_text_read(&t, bad[i].text, &err), ERR_USAGE, "%s", bad[i].text);
        cr_assert(strstr(err.msg, bad[i].why), "%s: %s", bad[i].text, err.msg);
        release(&t);
    }
}
