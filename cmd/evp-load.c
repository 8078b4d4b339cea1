/* evp-load - carries out a manifest: places every payload on its tier and writes a receipt.
 *
 * loader/load/ does the work. Here are the options, the progress bars, the list of a dry run and the summary.
 */
#include "base/clock.h"
#include "base/log.h"
#include "cmd/options.h"
#include "base/rows.h"
#include "base/parse.h"
#include "cmd/engine_say.h"
#include "cmd/interrupt.h"
#include "cmd/next.h"
#include "cmd/summary.h"
#include "methods/method_plugin.h"
#include "loader/load/load.h"

#include <grp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *payloads, *receipt, *name_space, *group, *retire, *plugin;
    bool dry_run, rollback, verify, chunks, new_disk, take_over, json;
    int jobs;
    double wait_s;
    struct opt_common common;
} cfg = { .jobs = 4 };

static const struct opt opts[] = {
    OPT_HEAD("Input"),
    OPT_TEXT('p', "payloads", &cfg.payloads, "DIR", "folder of the payloads that evp-pack wrote"),
    OPT_NAMESPACE(&cfg.name_space),
    OPT_PLUGIN(&cfg.plugin),
    OPT_HEAD("Work"),
    OPT_BOOL(0, "rollback", &cfg.rollback, "undo the load in force, which must be the load of this manifest"),
    OPT_TEXT(0, "retire", &cfg.retire, "NAMESPACE",
             "remove all payloads of this namespace (a model digest) from the manifest's tiers; place nothing"),
    OPT_BOOL(0, "take-over", &cfg.take_over, "evict also what a plan of another folder has placed in the namespace"),
    OPT_BOOL(0, "verify", &cfg.verify,
             "also read every payload in place, and replace what is damaged or differs from the payload folder"),
    OPT_BOOL(0, "new", &cfg.new_disk, "folders may be empty although the plan keeps payloads there"),
    OPT_CHUNKS(&cfg.chunks),
    OPT_TEXT(0, "group", &cfg.group, "NAME",
             "let this group find and read the payloads in the folders, from now on (default: as before)"),
    OPT_PERIOD(0, "wait", &cfg.wait_s, "SECONDS", 0, 1e9, "wait this long for another load of the same tiers to end"),
    OPT_NUM(0, "jobs", &cfg.jobs, 1, 64, "copy N payloads at the same time"),
    OPT_HEAD("Output"),
    OPT_DRY_RUN(&cfg.dry_run),
    OPT_WRITES(0, "receipt", &cfg.receipt, "FILE", "record of which payload is where (default: MANIFEST.receipt)"),
    OPT_JSON(&cfg.json),
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
        "Inserts, moves, replaces and evicts payloads until the tiers hold what the manifest says, in an order that "
        "never fills a tier beyond its capacity; only while full tiers exchange contexts, a tier takes up to 1/64 too "
        "much. Only payloads of the manifest's model, or of --namespace, are touched.\n"
        "\n"
        "Plans of two folders do not share a namespace: a load that would evict what the other one placed is refused, "
        "unless the manifest names the other as its previous one, or with --take-over.\n"
        "\n"
        "Every payload is checked before it is placed, and read back after it is written. Readers of the tiers "
        "(libevicpress, evicpress.h) see only whole payloads at every moment. After an interruption the next load, of "
        "this manifest or another, goes on from there; after success it has nothing to do.\n"
        "\n"
        "A context whose payload is missing or damaged, and a tier that cannot be opened or fails, is reported and "
        "left out; everything else is loaded, and the status is 1. The next load makes up for it. A damaged file in "
        "the payload folder counts as absent.\n"
        "\n"
        "Tiers are folders (kinds dram and file) or a Redis server (kind redis, with a folder for its state). A folder "
        "is made if its parent exists, for its user alone or --group; it is refused if it belongs to another user or "
        "others may write there.\n"
        "\n"
        "Contexts on tiers of other kinds are left out, with status 1.\n"
        "\n"
        "A dry run prints operation, tier before, tier after, bytes, context and config, separated by tabs; with "
        "--verify it ends with status 3 if a payload in place is damaged.",
    .examples = "  evp-load manifest.jsonl --payloads payloads/ --dry-run\n"
                "  evp-load manifest.jsonl --payloads payloads/\n"
                "  evp-load manifest.jsonl --payloads payloads/ --rollback\n",
    .opts = opts,
    .common = &cfg.common,
};

/* ---- progress --------------------------------------------------------------- */

/* arg: int, the steps that the bar shows. */
static void show_progress(void *arg, enum load_phase phase, int done, int total)
{
    int *shown = arg;

    if (done == 0) {
        progress_end(); /* of a failed phase */
        progress_begin(phase == LOAD_CHECKS ? "payloads checked" : "steps", total);
        *shown = 0;
    }
    progress_add(done - *shown);
    *shown = done;
    if (done == total)
        progress_end();
}

/* ---- a dry run ------------------------------------------------------------ */

static void print_change(void *arg, const struct load_change *c)
{
    (void)arg;
    printf("%s\t%s\t%s\t%lld\t%s\t%s\n", operation_name(c->operation), c->from ? c->from : "-", c->to ? c->to : "-",
           (long long)c->bytes, c->id, c->config);
}

/* ---- the summary ----------------------------------------------------------- */

static void say_operations(const struct load_report *r)
{
    struct buf text = { 0 };

    for (int op = OP_INSERT; op <= OP_EVICT; op++)
        if (r->n_operations[op])
            buf_printf(&text, "%s%d %s", text.n ? ", " : "", r->n_operations[op], operation_name((enum operation)op));
    log_info("%s%s", cfg.dry_run ? "would do: " : "", text.n ? buf_str(&text) : "no payloads");
    buf_release(&text);
}

static void say_tier(const struct load_tier *t)
{
    char fill[TEXT_SHORT], capacity[TEXT_SHORT], written[TEXT_SHORT];
    bool limited = t->capacity != INT64_MAX;

    text_bytes(capacity, (double)t->capacity);
    text_bytes(written, (double)t->written);
    log_info("tier %s: %s%s%s placed, %s written", t->name, text_bytes(fill, (double)t->placed), limited ? " of " : "",
             limited ? capacity : "", written);
}

static void say_done(const struct load_report *r, double seconds)
{
    char spent[TEXT_SHORT];

    say_operations(r);
    for (int t = 0; t < r->n_tiers; t++)
        if (r->tier[t].name)
            say_tier(&r->tier[t]);
    if (r->not_back)
        log_info("nothing was rolled back: the load in force stays");
    else
        log_info("%s%s in %s",
                 cfg.rollback ? "rolled back"
                 : cfg.retire ? "retired"
                              : "loaded",
                 r->n_skipped ? " in part" : "", text_seconds(spent, seconds));
}

/* The summary for scripts, without times: two runs print the same. */
static void put_report(struct json_out *w, const struct load_report *r)
{
    json_put_bool(w, "nothing_to_do", r->nothing_to_do);
    json_put_bool(w, "dry_run", cfg.dry_run);
    for (int op = OP_INSERT; op <= OP_EVICT; op++)
        json_put_int(w, operation_name((enum operation)op), r->n_operations[op]);
    json_put_int(w, "damaged", r->n_damaged);
    json_put_int(w, "unknown", r->n_unknown);
    json_put_int(w, "skipped", r->n_skipped);
    json_put_int(w, "away", r->n_away);
    json_put_int(w, "chunked", r->n_parts);
    json_begin(w, "tiers", '[');
    for (int t = 0; t < r->n_tiers; t++) {
        if (!r->tier[t].name)
            continue;
        json_begin(w, NULL, '{');
        json_put_text(w, "name", r->tier[t].name);
        json_put_int(w, "placed_bytes", r->tier[t].placed);
        json_put_int(w, "written_bytes", r->tier[t].written);
        json_put_int(w, "other_bytes", r->tier[t].other);
        json_end(w, '}');
    }
    json_end(w, ']');
}

static void print_report(const struct load_report *r)
{
    struct buf text = { 0 };
    struct json_out w = { .buf = &text };

    json_begin(&w, NULL, '{');
    put_report(&w, r);
    json_end(&w, '}');
    puts(buf_str(&text));
    buf_release(&text);
}

/* ---- running ---------------------------------------------------------------- */

static void say_result(const struct load *l, double seconds)
{
    const struct load_report *r = load_report(l);

    put_report(summary_json(), r);
    if (cfg.json)
        print_report(r);
    if (r->n_parts)
        log_info("%sthe chunks of %d context%s %s the index", cfg.dry_run ? "would do: " : "", r->n_parts,
                 r->n_parts == 1 ? "" : "s", cfg.chunks ? "enter" : "leave");
    if (r->nothing_to_do)
        log_info("nothing to do: %d payload%s in place", r->n_goals, r->n_goals == 1 ? " is" : "s are");
    else if (cfg.dry_run)
        say_operations(r);
    else
        say_done(r, seconds);
}

/* The status of a load that has left something out. */
static int judge(const struct load_report *r, struct err *err)
{
    if (cfg.dry_run && cfg.verify && r->n_damaged)
        return err_set(err, ERR_FORMAT, "damaged payloads in place: %d", r->n_damaged);
    if (r->n_skipped)
        return err_set(err, ERR_FAIL, "contexts left out: %d", r->n_skipped);
    if (r->n_away)
        return err_set(err, ERR_FAIL, "tiers left out: %d", r->n_away);
    if (r->n_unknown)
        return err_set(err, ERR_FAIL, "payloads not verified: %d", r->n_unknown);
    return r->no_receipt ? err_set(err, ERR_FAIL, "no receipt was written") : 0;
}

/* The table's name is that in evp-plan's command. */
static void say_next(const char *manifest)
{
    struct manifest m;
    struct rows_in in;
    struct err ignored;

    if (rows_open(&in, manifest, "manifest", &ignored))
        return;
    if (!manifest_read(&m, manifest, &ignored)) {
        engine_say_unheld(&m);
        engine_say_line(&m, manifest, cfg.name_space);
        manifest_release(&m);
    }
    const char *table = next_operand(in.header, "evp-plan", 0);
    next_say("evp-report", *table ? table : "table.h5", manifest, "-o", "report.html", NULL);
    rows_close(&in);
}

static int run(const struct load_options *options, struct err *err)
{
    double start = clock_now();
    struct load *l;

    int code = load_open(&l, options, err);
    progress_end();
    if (code)
        return code;
    const struct load_report *r = load_report(l);
    if (!r->nothing_to_do && cfg.dry_run && !cfg.json)
        load_each_change(l, print_change, NULL);
    else if (!cfg.dry_run) {
        interrupt_goes_on();
        code = load_run(l, err);
        progress_end();
    }
    if (!code) {
        say_result(l, clock_now() - start);
        code = judge(r, err);
    }
    if (!code && !r->nothing_to_do && !cfg.dry_run && !cfg.rollback && !cfg.retire && options->manifest)
        say_next(options->manifest);
    load_close(l);
    return code;
}

static int check_command(const char *manifest, gid_t *gid, struct err *err)
{
    const struct group *group = cfg.group ? getgrnam(cfg.group) : NULL;

    if (cfg.retire && (cfg.rollback || cfg.name_space))
        return err_set(err, ERR_USAGE, "--retire excludes --rollback and --namespace");
    if (cfg.group && !group)
        return err_set(err, ERR_USAGE, "'--group=%s' is not a group of this machine", cfg.group);
    if (!manifest && isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE, "MANIFEST, from evp-plan, is missing");
    *gid = group ? group->gr_gid : 0;
    return method_plugins_open(cfg.plugin, err);
}

int main(int argc, char **argv)
{
    struct err err;
    gid_t group = 0;
    int first, shown = 0;
    int status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    signal(SIGXFSZ, SIG_IGN); /* a file above the limit makes write() fail, as a full disk does */
    int code = check_command(first < argc ? argv[first] : NULL, &group, &err);
    struct load_options options = {
        .manifest = first < argc ? argv[first] : NULL,
        .payloads = cfg.payloads,
        .receipt = cfg.receipt,
        .name_space = cfg.retire ? cfg.retire : cfg.name_space,
        .direction = cfg.rollback ? LOAD_BACK : LOAD_FORWARD,
        .take_over = cfg.take_over,
        .retire = cfg.retire,
        .new_disk = cfg.new_disk,
        .dry_run = cfg.dry_run,
        .repair = cfg.verify,
        .chunks = cfg.chunks,
        .wait_s = cfg.wait_s,
        .share = cfg.group != NULL,
        .group = group,
        .jobs = cfg.jobs,
        .args = argv + 1,
        .n_args = argc - 1,
        .warn = log_warn,
        .progress = show_progress,
        .arg = &shown,
    };
    if (!code)
        code = run(&options, &err);
    return summary_end(code, 0, &err);
}
