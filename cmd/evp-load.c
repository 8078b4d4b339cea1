/* evp-load - carry a manifest out: put every payload into its tier, and write a receipt of what is where.
 *
 * The work is done by loader/load/; here are the options, the bars, the list of a dry run and the summary.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/parse.h"
#include "loader/load/load.h"

#include <signal.h>
#include <string.h>

static struct {
    const char *payloads, *receipt;
    bool dry_run, rollback, verify;
    struct opt_common common;
} cfg;

static const struct opt opts[] = {
    OPT_HEAD("Files"),
    OPT_TEXT('p', "payloads", &cfg.payloads, "DIR", "the folder of payloads that evp-pack wrote"),
    OPT_TEXT(0, "receipt", &cfg.receipt, "FILE", "the record of what was written where (default: MANIFEST.receipt)"),
    OPT_HEAD("What to do"),
    OPT_DRY_RUN(&cfg.dry_run),
    OPT_BOOL(0, "rollback", &cfg.rollback, "undo the last load of this manifest"),
    OPT_BOOL(0, "verify", &cfg.verify, "also read every payload in place, and replace those that are damaged"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-load",
    .summary = "place the payloads of a manifest in the tiers of a serving cache",
    .operands = "[MANIFEST]",
    .min_operands = 0,
    .max_operands = 1,
    .about =
        "Compares what the tiers hold with what the manifest says, and inserts, moves, replaces and evicts payloads "
        "until both agree, in an order that never fills a tier beyond its capacity. Every payload is checked before "
        "anything is changed, and read back after it was written. Readers of the tiers (libevp, evp.h) see only whole "
        "payloads at every moment. After an interruption the same command goes on; after success it has nothing to do. "
        "Tiers are folders (kinds dram and file); they are made when their parent folder exists. A dry run prints "
        "operation, tier before, tier after, bytes, context and config, separated by tabs; with --verify it ends with "
        "status 3 when something in place is damaged.",
    .examples = "  evp-load manifest.jsonl --payloads payloads/ --dry-run\n"
                "  evp-load manifest.jsonl --payloads payloads/\n"
                "  evp-load manifest.jsonl --payloads payloads/ --rollback\n",
    .opts = opts,
    .common = &cfg.common,
};

/* ---- progress --------------------------------------------------------------- */

/* arg: int, what the bar was told. */
static void show_progress(void *arg, enum load_phase phase, int done, int total)
{
    int *shown = arg;

    if (done == 0) {
        progress_end(); /* of a phase that failed */
        progress_begin(phase == LOAD_CHECKS ? "payloads checked" : "steps", total);
        *shown = 0;
    }
    progress_add(done - *shown);
    *shown = done;
    if (done == total)
        progress_end();
}

/* ---- a dry run ------------------------------------------------------------ */

static void print_operations(const struct load *l)
{
    for (int i = 0; i < l->evicted.n; i++) {
        const struct entry *e = &l->evicted.at[i];
        printf("evict\t%s\t-\t%lld\t%s\t%s\n", l->store[e->tier].tier->name, (long long)e->bytes, e->id, e->config);
    }
    for (int i = 0; i < l->n_goals; i++) {
        const struct load_goal *g = &l->goal[i];
        if (g->operation == OP_KEEP)
            continue;
        printf("%s\t%s\t%s\t%lld\t%s\t%s\n", operation_name(g->operation),
               g->from < 0 ? "-" : l->store[g->from].tier->name, l->store[g->store].tier->name,
               (long long)g->want.bytes, g->want.id, g->want.config);
    }
}

/* ---- the summary ----------------------------------------------------------- */

static void say_operations(const struct load *l)
{
    struct buf text = { 0 };

    for (int op = OP_INSERT; op <= OP_EVICT; op++)
        if (l->n_operations[op])
            buf_printf(&text, "%s%d %s", text.n ? ", " : "", l->n_operations[op], operation_name((enum operation)op));
    log_info("%s%s", cfg.dry_run ? "would do: " : "", text.n ? buf_str(&text) : "no payloads");
    buf_release(&text);
}

static void say_tier(const struct load *l, int store)
{
    char fill[TEXT_SHORT], capacity[TEXT_SHORT], spare[TEXT_SHORT], written[TEXT_SHORT];
    bool limited = l->capacity[store] != INT64_MAX;

    text_bytes(capacity, (double)l->capacity[store]);
    text_bytes(spare, (double)l->spare[store]);
    text_bytes(written, (double)l->written[store]);
    log_info("tier %s: %s%s%s placed, %s kept for a rollback, %s written", l->store[store].tier->name,
             text_bytes(fill, (double)load_goal_bytes(l, store)), limited ? " of " : "", limited ? capacity : "", spare,
             written);
}

static void say_rollback(const struct load *l)
{
    if (l->n_lost)
        log_warn("this load cannot be rolled back: %d payloads did not fit as spares and are not in the payload folder",
                 l->n_lost);
    else if (l->n_refetch)
        log_info("a rollback will need the payload folder for %d payloads", l->n_refetch);
}

static void say_done(const struct load *l, double seconds)
{
    char spent[TEXT_SHORT];

    say_operations(l);
    for (int s = 0; s < l->n_stores; s++)
        if (l->store[s].tier)
            say_tier(l, s);
    if (!cfg.rollback)
        say_rollback(l);
    log_info("%s in %s", cfg.rollback ? "rolled back" : "loaded", text_seconds(spent, seconds));
}

/* ---- running ---------------------------------------------------------------- */

static int run(const struct load_options *options, struct err *err)
{
    double start = clock_now();
    struct load l;

    int code = load_open(&l, options, err);
    progress_end();
    if (code)
        return code;
    if (l.nothing_to_do)
        log_info("nothing to do: %d payload%s in place", l.n_goals, l.n_goals == 1 ? " is" : "s are");
    else if (cfg.dry_run) {
        print_operations(&l);
        say_operations(&l);
    } else {
        code = load_run(&l, err);
        progress_end();
    }
    if (!code && !cfg.dry_run && !l.nothing_to_do)
        say_done(&l, clock_now() - start);
    if (!code && cfg.dry_run && cfg.verify && l.n_damaged)
        code = err_set(err, ERR_FORMAT, "damaged payloads in place: %d", l.n_damaged);
    load_close(&l);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, shown = 0;
    int status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    signal(SIGXFSZ, SIG_IGN); /* then a file above the limit makes write() fail, as a full disk does */
    struct load_options options = {
        .manifest = first < argc ? argv[first] : NULL,
        .payloads = cfg.payloads,
        .receipt = cfg.receipt,
        .direction = cfg.rollback ? LOAD_BACK : LOAD_FORWARD,
        .dry_run = cfg.dry_run,
        .repair = cfg.verify,
        .args = argv + 1,
        .n_args = argc - 1,
        .warn = log_warn,
        .progress = show_progress,
        .arg = &shown,
    };
    status = run(&options, &err) ? log_failure(&err) : 0;
    return opt_finish(status);
}
