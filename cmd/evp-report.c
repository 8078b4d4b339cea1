/* evp-report - one page of HTML from a profile or table, a manifest and a receipt.
 *
 * Files may come in any order, one of each kind; their content tells the kind. They need not belong together: contexts
 * that the table does not have lack the details.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "cmd/show.h"
#include "cmd/summary.h"
#include "report/report.h"

static struct {
    const char *output;
    struct opt_common common;
} cfg;

static const struct opt opts[] = {
    OPT_HEAD("Output"),
    OPT_STREAM(&cfg.output, "FILE"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-report",
    .summary = "one page about a profile and its plan",
    .operands = "FILE...",
    .min_operands = 1,
    .max_operands = 3,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "FILE is a profile or table, a manifest, or a receipt of evp-load; at most one of each. The page goes to "
        "standard output without --output.\n"
        "\n"
        "The page has plots, if gnuplot is installed: quality against size for each method and dataset, held-out "
        "against training quality, the fill of the tiers, and the TTFT of the contexts. Its tables compare the plan "
        "with plans that need no planner, and say where each context went and why, with example answers.\n"
        "\n"
        "It needs no other file and no network, contains your questions and answers, and is smaller than 2 MB: of more "
        "than about ten thousand contexts it lists the most used.",
    .examples = "  evp-report table.h5 manifest.jsonl -o report.html\n"
                "  evp-report profile.h5 >report.html\n",
};

struct inputs {
    struct table table;
    struct manifest manifest;
    struct receipt receipt;
    bool has_table, has_manifest, has_receipt;
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
        if (in->has_manifest)
            return twice(path, "manifest", err);
        in->has_manifest = manifest_read(&in->manifest, path, err) == 0;
        return in->has_manifest ? 0 : err->code;
    case SHOW_RECEIPT:
        if (in->has_receipt)
            return twice(path, "receipt", err);
        in->has_receipt = receipt_read(&in->receipt, path, err) == 0;
        return in->has_receipt ? 0 : err->code;
    default: return err_set(err, ERR_FORMAT, "'%s' is not a profile, table, manifest or receipt", path);
    }
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

    for (int i = 0; i < n && !code; i++)
        code = read_input(&in, path[i], err);
    struct report r = { .table = in.has_table ? &in.table : NULL,
                        .manifest = in.has_manifest ? &in.manifest : NULL,
                        .receipt = in.has_receipt ? &in.receipt : NULL };
    if (!code)
        code = report_write(&r, &html, err);
    if (!code)
        code = write_page(&html, err);
    if (!code) {
        summary_int("bytes", (int64_t)html.n);
        json_put_bool(summary_json(), "plots", !r.no_plots);
    }
    if (!code && cfg.output && strcmp(cfg.output, "-") != 0)
        log_info("wrote %s", cfg.output);
    if (!code && r.no_plots)
        log_warn("gnuplot is not installed: the page has tables and no plots");
    buf_release(&html);
    table_release(&in.table);
    manifest_release(&in.manifest);
    receipt_release(&in.receipt);
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
