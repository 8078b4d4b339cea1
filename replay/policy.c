/* policy.c - finds a policy by its name. */
#include "replay/policy.h"

#include <math.h>
#include <string.h>

extern const struct policy_kind policy_prefill, policy_fifo, policy_lru, policy_lfu, policy_gdsf, policy_s3fifo,
    policy_sieve, policy_arc, policy_slru, policy_tlru, policy_belady, policy_evicpress, policy_adaptcache,
    policy_night, policy_manifest, policy_clairvoyant, policy_live, policy_drift, policy_priority;

const struct policy_kind *const policy_kinds[] = {
    &policy_prefill,     &policy_fifo,      &policy_lru,        &policy_lfu,      &policy_gdsf,
    &policy_s3fifo,      &policy_sieve,     &policy_arc,        &policy_slru,     &policy_tlru,
    &policy_belady,      &policy_evicpress, &policy_adaptcache, &policy_night,    &policy_manifest,
    &policy_clairvoyant, &policy_live,      &policy_drift,      &policy_priority, NULL
};

const struct policy_kind *policy_find(const char *text)
{
    for (int i = 0; policy_kinds[i]; i++) {
        const struct policy_kind *kind = policy_kinds[i];
        size_t n = strlen(kind->name);
        if (strncmp(text, kind->name, n) == 0 && strchr(*kind->options ? "=+:," : ",", text[n]))
            return kind;
    }
    return NULL;
}

int policy_open(struct policy *p, const char *name, const struct replay_world *w, struct placement_input *in,
                struct err *err)
{
    *p = (struct policy){ .kind = policy_find(name),
                          .world = w,
                          .in = in,
                          .load = in->load,
                          .promised_ttft_s = (double)NAN,
                          .promised_quality = (double)NAN };
    in->load = (struct manifest_load){ .rate = 0 };
    if (!p->kind)
        return err_set(err, ERR_USAGE, "there is no policy '%s'", name);
    if (p->kind->open(p, name + strlen(p->kind->name), err)) {
        policy_close(p);
        return err_wrap(err, "policy '%s'", name);
    }
    return 0;
}

void policy_close(struct policy *p)
{
    if (p->kind && p->kind->close)
        p->kind->close(p);
    *p = (struct policy){ 0 };
}
