/* evp-show - prints or verifies a file of the evp tools or a model, or prints the token ids of a text. Each format has
 * its function (show/show.h). Here are the options, and standard input when it is a pipe. */
#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cmd/options.h"
#include "drift/drift.h"
#include "engine/model/model.h"
#include "show/show.h"
#include "cmd/summary.h"
#include "methods/method_plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPOOL_PATH = 4096 };

static struct {
    bool check, json, lineage, methods, models;
    const char *tokenize, *ids, *find, *metrics, *model, *chat, *name_space, *plugin;
    int rows;
    struct opt_common common;
} cfg = { .rows = 40 };

static const struct opt opts[] = {
    OPT_HEAD("Instead of a summary"),
    OPT_BOOL(0, "check", &cfg.check, "verify each file and print one line: ok, or what is wrong"),
    OPT_BOOL(0, "lineage", &cfg.lineage, "print the tools that made the file, the last one first"),
    OPT_TEXT(0, "tokenize", &cfg.tokenize, "FILE",
             "print the token ids of each line of this text; the model is the operand"),
    OPT_TEXT(0, "ids", &cfg.ids, "ID",
             "print the token ids of this context of FILE, with which every prompt about it begins"),
    OPT_TEXT(
        0, "find", &cfg.find, "FILE",
        "print which prefix of this prompt is placed in the tiers' folders named as operands, and where the nearest "
        "placed context differs from it"),
    OPT_TEXT(
        0, "metrics", &cfg.metrics, "PATH",
        "print what servers have counted: a file of evp_write_metrics(), or all files *.prom of a folder together"),
    OPT_BOOL(0, "methods", &cfg.methods, "print the compression methods, their parameters and papers"),
    OPT_BOOL(0, "models", &cfg.models, "print the families of models, and what is done with them"),
    OPT_PLUGIN(&cfg.plugin),
    OPT_HEAD("Model and payloads, for --ids, --find and --check of tables"),
    OPT_MODEL(&cfg.model),
    OPT_CHAT(&cfg.chat),
    OPT_NAMESPACE(&cfg.name_space),
    OPT_HEAD("Output"),
    OPT_JSON(&cfg.json),
    OPT_NUM(0, "rows", &cfg.rows, 0, INT_MAX, "print at most N rows of a table; 0: all"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-show",
    .summary = "show what is in a file, verify it, or tokenize a text",
    .operands = "[FILE...]",
    .min_operands = 0,
    .max_operands = -1,
    .about =
        "Recognises files by their content: contexts, questions, profiles and utility tables, tiers, manifests, "
        "receipts, frontiers, times, payloads, safetensors files, GGUF models, and folders of models, of embedders and "
        "of tiers that evp-load has filled.\n"
        "\n"
        "A model may also be ORG/NAME in the Hugging Face cache, or a config.json "
        "alone: then the bytes of its KV cache are shown, and whether it can be profiled.\n"
        "\n"
        "--tokenize adds nothing around the text, whose lines may also end with NUL characters. What looks like a "
        "special token is text, for an embedder the token.\n"
        "\n"
        "--ids prints the ids by which libevicpress finds the context, with the chat template. The prompt of --find is "
        "a user's message, context and question in one, or the JSON body of a request; with --chat-template none it is "
        "the whole prompt.",
    .examples = "  evp-show manifest.jsonl\n"
                "  evp-show --check /var/lib/evp\n"
                "  evp-show --check payloads/*.safetensors\n"
                "  evp-show SmolLM2-135M-Instruct.Q4_1.gguf --tokenize text.txt\n"
                "  evp-show contexts.jsonl --ids Apache-2.0 | ./prefix manifest.jsonl\n"
                "  evp-show --find prompt.txt --model Qwen/Qwen3-8B /dev/shm/evp /var/lib/evp\n"
                "  evp-show --metrics /srv/metrics\n",
    .opts = opts,
    .common = &cfg.common,
};

/* By enum show_kind. */
static const struct {
    const char *name;
    int (*show)(struct sheet *s, const char *path, enum show_depth depth, struct err *err);
} formats[] = {
    [SHOW_CONTEXTS] = { "contexts", show_contexts }, [SHOW_QUESTIONS] = { "questions", show_questions },
    [SHOW_TIERS] = { "tiers", show_tiers },          [SHOW_TABLE] = { "table", show_table },
    [SHOW_MANIFEST] = { "manifest", show_manifest }, [SHOW_RECEIPT] = { "receipt", show_receipt },
    [SHOW_PAYLOAD] = { "payload", show_payload },    [SHOW_SAFETENSORS] = { "safetensors", show_safetensors },
    [SHOW_MODEL] = { "model", show_model },          [SHOW_EMBEDDER] = { "embedder", show_embedder },
    [SHOW_STORE] = { "store", show_store },          [SHOW_TIMES] = { "times", show_times },
    [SHOW_FRONTIER] = { "frontier", show_frontier }, [SHOW_REPLAY] = { "replay", show_replay },
    [SHOW_ACCESS] = { "access", show_access },       [SHOW_CELLS] = { "cells", show_cells },
    [SHOW_DRIFT] = { "drift", show_drift },          [SHOW_RUN] = { "summary", show_run },
    [SHOW_PAYLOADS] = { "payloads", show_payloads },
};

/* Was a table made with the model of --model? */
static int check_model(const char *path, struct err *err)
{
    struct table t;

    if (table_read(&t, path, TABLE_ALL, err))
        return err->code;
    int code = drift_check_model(&t, cfg.model, cfg.chat, err);
    table_release(&t);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

static int show(struct sheet *s, const char *path, struct err *err)
{
    enum show_kind kind;

    if (show_detect(path, &kind, err))
        return err->code;
    if (cfg.lineage)
        return show_lineage(&s->text, path, kind, err);
    sheet_begin(s, path, formats[kind].name);
    if (formats[kind].show(s, path, cfg.check ? SHOW_CHECK : SHOW_SUMMARY, err))
        return err->code;
    if (cfg.model && kind == SHOW_TABLE && check_model(path, err))
        return err->code;
    return sheet_end(s, err);
}

/* The same; the operand may be ORG/NAME in the Hugging Face cache. */
static int show_operand(struct sheet *s, const char *operand, struct err *err)
{
    char *cached = file_exists(operand) ? NULL : model_path(operand, err);
    int code = show(s, cached ? cached : operand, err);

    free(cached);
    return code;
}

/* Files say what they like, also to a terminal. */
static void print_text(struct buf *text)
{
    if (text->at)
        utf8_defuse(text->at);
    fputs(buf_str(text), stdout);
}

/* Returns the exit status for one file. With --check the failure is the result and goes to stdout. */
static int show_one(const char *path, int *n_shown)
{
    struct sheet s = { .max_rows = cfg.rows };
    struct buf line = { 0 };
    struct err err;
    int code = show_operand(&s, path, &err), status = err_exit_status(code);

    if (cfg.check) {
        buf_printf(&line, "%s%s\n", code ? err.msg : path, code ? "" : ": ok"); /* the message names the file */
        print_text(&line);
    } else if (code)
        status = log_failure(&err);
    else if (cfg.json)
        fputs(buf_str(&s.json), stdout);
    else {
        fputs((*n_shown)++ ? "\n" : "", stdout);
        print_text(&s.text);
    }
    fflush(stdout); // a file that becomes shorter while it is read ends the process
    sheet_release(&s);
    buf_release(&line);
    return status;
}

/* Readers seek and open a file more than once, which a pipe does not allow: a pipe is copied into a file that replaces
 * standard input. temp: its path, for the caller to remove; "" if standard input is a file. */
static int spool_stdin(char temp[SPOOL_PATH], struct err *err)
{
    struct buf text = { 0 };
    struct stat st;

    temp[0] = '\0';
    if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
        return 0;
    if (file_read(&text, "-", SIZE_MAX / 4, err))
        return err->code;
    snprintf(temp, SPOOL_PATH, "%.*s/evp-show.XXXXXX", SPOOL_PATH - 32, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int fd = mkstemp(temp), code = 0;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!f || fwrite(buf_str(&text), 1, text.n, f) != text.n || fflush(f) || dup2(fd, STDIN_FILENO) < 0)
        code = err_set(err, ERR_IO, "cannot keep standard input in '%s': %s", temp, strerror(errno));
    if (f)
        fclose(f);
    buf_release(&text);
    return code;
}

static int show_stdin(int *n_shown)
{
    char temp[SPOOL_PATH];
    struct err err;
    int status = spool_stdin(temp, &err) ? log_failure(&err) : show_one("/dev/stdin", n_shown);

    if (temp[0])
        unlink(temp);
    return status;
}

static int show_files(char **files, int n)
{
    int worst = 0, n_shown = 0, n_bad = 0;

    for (int i = 0; i < n; i++) {
        int status = strcmp(files[i], "-") == 0 ? show_stdin(&n_shown) : show_one(files[i], &n_shown);
        worst = status > worst ? status : worst;
        n_bad += status != 0;
    }
    summary_int("files", n);
    summary_int("files_bad", n_bad);
    return worst;
}

/* --find, --metrics, --methods and --models. */
static int run_asked(char **folders, int n, struct err *err)
{
    const struct show_find asked = { cfg.find, cfg.model, cfg.chat, cfg.name_space };
    const bool build = cfg.methods || cfg.models;
    struct sheet s = { .max_rows = build ? 0 : cfg.rows };

    sheet_begin(&s,
                cfg.find      ? cfg.find
                : cfg.metrics ? cfg.metrics
                              : "this build",
                cfg.find      ? "prompt"
                : cfg.metrics ? "metrics"
                : cfg.methods ? "methods"
                              : "models");
    int code = cfg.find ? show_find(&s, folders, n, &asked, err) : cfg.metrics ? show_metrics(&s, cfg.metrics, err) : 0;
    if (cfg.methods)
        show_methods(&s);
    if (cfg.models)
        show_models(&s);
    if (!code)
        code = sheet_end(&s, err);
    if (!code && cfg.json)
        fputs(buf_str(&s.json), stdout);
    else if (!code)
        print_text(&s.text);
    sheet_release(&s);
    return code;
}

static int misuse(const char *why)
{
    log_error("%s", why);
    return 2;
}

static int run(char **files, int n)
{
    struct err err;

    const bool build = cfg.methods || cfg.models, asked = cfg.find || cfg.metrics || build;
    if (cfg.check + (cfg.json && !asked) + cfg.lineage + (cfg.tokenize != NULL) + (cfg.ids != NULL) +
            (cfg.find != NULL) + (cfg.metrics != NULL) + cfg.methods + cfg.models >
        1)
        return misuse("--check, --lineage, --tokenize, --ids, --find, --metrics, --methods and --models exclude each "
                      "other; of these --json goes only with --find, --metrics, --methods and --models");
    if (method_plugins_open(cfg.plugin, &err))
        return log_failure(&err);
    if (cfg.find && n == 0)
        return misuse("--find needs the folders of tiers as operands");
    if ((cfg.metrics || build) && n > 0)
        return misuse(cfg.metrics   ? "--metrics takes no operands"
                      : cfg.methods ? "--methods takes no operands"
                                    : "--models takes no operands");
    if (cfg.name_space && !cfg.find)
        return misuse("--namespace needs --find");
    if (cfg.find || ((cfg.metrics || build) && !cfg.model && !cfg.chat))
        return run_asked(files, n, &err) ? log_failure(&err) : 0;
    if (cfg.ids) {
        const struct show_prompt prompt = { cfg.ids, cfg.model, cfg.chat };
        if (n != 1)
            return misuse("--ids needs one file of contexts");
        return show_ids(files[0], &prompt, &err) ? log_failure(&err) : 0;
    }
    if (cfg.check ? cfg.chat && !cfg.model : cfg.model || cfg.chat)
        return misuse("--model and --chat-template need --ids, --find or --check; otherwise the model is an operand");
    if (cfg.tokenize) {
        if (n > 1)
            return misuse("--tokenize takes one model");
        return show_tokens(n ? files[0] : NULL, cfg.tokenize, &err) ? log_failure(&err) : 0;
    }
    char *standard_input[] = { (char[]){ "-" } };
    return n ? show_files(files, n) : show_files(standard_input, 1);
}

int main(int argc, char **argv)
{
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    return summary_end(0, run(argv + first, argc - first), NULL);
}
