/* evp-report - one page of HTML from a profile or table, a manifest, a frontier, a receipt and a replay.
 *
 * Files may come in any order, one of each kind; their content tells the kind. They need not belong together: contexts
 * that the table does not have lack the details.
 */
#include "base/file.h"
#include "base/log.h"
#include "cmd/options.h"
#include "show/show.h"
#include "cmd/summary.h"
#include "report/report.h"

#include <string.h>

static struct {
    const char *output, *at_quality;
    double max_ttft;
    bool svg;
    struct opt_common common;
} cfg = { .max_ttft = -1 };

static const struct opt opts[] = {
    OPT_HEAD("Output"),
    OPT_STREAM(&cfg.output, "FILE"),
    OPT_BOOL(0, "svg", &cfg.svg, "write the figure of TTFT against quality alone, as SVG, in place of the page"),
    OPT_WORDS(0, "at-quality", &cfg.at_quality,
              "write what each kind of policy of a replay brings at these qualities, as a table, in place of the page"),
    OPT_PERIOD(0, "max-ttft", &cfg.max_ttft, "SECONDS", 0, 1e6,
               "tell the highest rate at which TTFT is at most this, in the table of --at-quality"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-report",
    .summary = "one page about a profile and its plan",
    .operands = "FILE...",
    .of_users = true,
    .min_operands = 1,
    .max_operands = 6,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "FILE is a profile or table, a manifest, the frontier.tsv of a sweep over alpha, a receipt of evp-load, or the "
        "table of evp-replay; at most one of each. A second manifest is the plan before, shown beside the first. The "
        "page goes to standard output without --output.\n"
        "\n"
        "It begins with what the plan gains. Its figures are TTFT against quality, beside plans that need no planner; "
        "the times of the uses; quality against size; held-out against training quality.\n"
        "\n"
        "Its tables say how the tiers are filled, how good each config is, and where each context went and why. "
        "Examples show what changed in the answers.\n"
        "\n"
        "--at-quality reads the table of evp-replay alone: at a quality, the TTFT of each kind of policy (lru+kivi, "
        "night ...), between the points of its configs or alphas, and the highest of the rates at which it is at most "
        "--max-ttft (docs/formats/replay.md).\n"
        "\n"
        "It needs no other file and no network, has a light and a dark look, contains your questions and answers, and "
        "is smaller than 2 MB: of more than about seven thousand contexts it lists the most used.",
    .examples = "  evp-report table.h5 manifest.jsonl sweep/frontier.tsv -o report.html\n"
                "  evp-report profile.h5 >report.html\n"
                "  evp-report sweep/manifest-10.jsonl sweep/frontier.tsv --svg -o gain.svg\n"
                "  evp-report replay.tsv --at-quality .9,.95 --max-ttft 300ms >equal.tsv\n",
};

struct inputs {
    struct table table;
    struct manifest manifest, before;
    struct tsv frontier;
    struct receipt receipt;
    struct tsv replay;
    bool has_table, has_manifest, has_before, has_frontier, has_receipt, has_replay;
};

static int twice(const char *path, const char *kind, struct err *err)
{
    return err_set(err, ERR_USAGE, "'%s' is a second %s; give one of each kind", path, kind);
}

static int read_input(struct inputs *in, const char *path, struct err *err)
{
    enum show_kind kind;

    if (show_detect(path, &kind, err))
        return err->code;
    switch (kind) {
    case SHOW_TABLE:
        if (in->has_table)
            return twice(path, "table", err);
        in->has_table = table_read(&in->table, path, TABLE_ALL, err) == 0;
        return in->has_table ? 0 : err->code;
    case SHOW_MANIFEST:
        if (in->has_before)
            return err_set(err, ERR_USAGE, "'%s' is a third manifest; give a plan, and the one before", path);
        if (in->has_manifest) {
            in->has_before = manifest_read(&in->before, path, err) == 0;
            return in->has_before ? 0 : err->code;
        }
        in->has_manifest = manifest_read(&in->manifest, path, err) == 0;
        return in->has_manifest ? 0 : err->code;
    case SHOW_FRONTIER:
        if (in->has_frontier)
            return twice(path, "frontier", err);
        in->has_frontier = frontier_read(&in->frontier, path, err) == 0;
        return in->has_frontier ? 0 : err->code;
    case SHOW_RECEIPT:
        if (in->has_receipt)
            return twice(path, "receipt", err);
        in->has_receipt = receipt_read(&in->receipt, path, err) == 0;
        return in->has_receipt ? 0 : err->code;
    case SHOW_REPLAY:
        if (in->has_replay)
            return twice(path, "replay", err);
        in->has_replay = replay_table_read(&in->replay, path, err) == 0;
        return in->has_replay ? 0 : err->code;
    default:
        return err_set(err, ERR_FORMAT, "'%s' is not a profile, table, manifest, frontier, receipt or replay", path);
    }
}

static int write_at_quality(const struct inputs *in, struct buf *out, struct err *err)
{
    struct report_at at = { .max_s = cfg.max_ttft };

    at.n = parse_list(cfg.at_quality, at.quality, REPORT_QUALITIES);
    if (cfg.svg)
        return err_set(err, ERR_USAGE, "--at-quality is a table, --svg a figure; give one of them");
    if (at.n < 1)
        return err_set(err, ERR_USAGE, "--at-quality '%s' is not a list of at most %d numbers", cfg.at_quality,
                       REPORT_QUALITIES);
    if (!in->has_replay)
        return err_set(err, ERR_USAGE, "--at-quality needs the table of evp-replay");
    return report_at_quality(&in->replay, &at, out, err);
}

static int write_page(const struct buf *html, struct err *err)
{
    if (cfg.output && strcmp(cfg.output, "-") != 0)
        return file_write(cfg.output, html->at, html->n, err);
    return fwrite(html->at, 1, html->n, stdout) == html->n ? 0 : err_set(err, ERR_IO, "cannot write standard output");
}

static int run(char **path, int n, struct err *err)
{
    struct inputs in = { 0 };
    struct buf html = { 0 };
    int code = 0;

    if (cfg.max_ttft >= 0 && !cfg.at_quality)
        code = err_set(err, ERR_USAGE, "--max-ttft needs --at-quality");
    for (int i = 0; i < n && !code; i++)
        code = read_input(&in, path[i], err);
    struct report r = { .table = in.has_table ? &in.table : NULL,
                        .manifest = in.has_manifest ? &in.manifest : NULL,
                        .before = in.has_before ? &in.before : NULL,
                        .frontier = in.has_frontier ? &in.frontier : NULL,
                        .receipt = in.has_receipt ? &in.receipt : NULL,
                        .replay = in.has_replay ? &in.replay : NULL };
    if (!code)
        code = cfg.at_quality ? write_at_quality(&in, &html, err)
               : cfg.svg      ? report_write_svg(&r, &html, err)
                              : report_write(&r, &html, err);
    if (!code)
        code = write_page(&html, err);
    if (!code)
        summary_int("bytes", (int64_t)html.n);
    if (!code && cfg.output && strcmp(cfg.output, "-") != 0)
        log_info("wrote %s", cfg.output);
    buf_release(&html);
    table_release(&in.table);
    manifest_release(&in.manifest);
    manifest_release(&in.before);
    tsv_release(&in.frontier);
    receipt_release(&in.receipt);
    tsv_release(&in.replay);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = run(argv + first, argc - first, &err);
    return summary_end(code, 0, &err);
}
