/* show.h - the formats that evp-show knows. Each has a function that reads a file with the format's own reader and
 * fills a sheet (show/show_sheet.h).
 *
 * To add a format: (1) its name in enum show_kind and its detection in show/show_detect.c (2) a show_*() here and in a
 * show/show_*.c (3) its row in formats[] of cmd/evp-show.c (4) a script in tests/cli/show
 */
#ifndef EVP_SHOW_H
#define EVP_SHOW_H

#include "base/buf.h"
#include "base/err.h"
#include "show/show_sheet.h"

enum show_kind {
    SHOW_CONTEXTS,
    SHOW_QUESTIONS,
    SHOW_TIERS,
    SHOW_TIMES,
    SHOW_TABLE,
    SHOW_MANIFEST,
    SHOW_RECEIPT,
    SHOW_PAYLOAD,
    SHOW_SAFETENSORS,
    SHOW_MODEL,
    SHOW_EMBEDDER,
    SHOW_STORE,
    SHOW_FRONTIER,
    SHOW_REPLAY,
    SHOW_ACCESS,
    SHOW_CELLS,
    SHOW_DRIFT,    // the state of evp-drift
    SHOW_RUN,      // what --summary wrote
    SHOW_PAYLOADS, // a folder
};

/* Detects the format by the file's content, not its name. ERR_FORMAT: unknown. */
int show_detect(const char *path, enum show_kind *kind, struct err *err) MUST_CHECK;

/* Each reads the whole file, with every check of its reader, and fills the sheet. SHOW_CHECK adds slow checks:
 * checksums, the tokenizer of a model, the files of a receipt, the index and the payloads of a store. */
enum show_depth { SHOW_SUMMARY, SHOW_CHECK };

int show_contexts(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_questions(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_tiers(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_times(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_table(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_manifest(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_receipt(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_payload(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_safetensors(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_model(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_shape(struct sheet *s, const char *path, struct err *err) MUST_CHECK; // of any model
int show_embedder(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_store(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_frontier(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_replay(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_access(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_cells(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_drift(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_run(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_payloads(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;

/* Adds the chain of tools that made a file to *out: the last tool first, the makers of its inputs indented below it.
 * ERR_FORMAT: the file has no lineage. */
int show_lineage(struct buf *out, const char *path, enum show_kind kind, struct err *err) MUST_CHECK;

/* Prints the token ids of each text of the file, a line each: of each line, or in a file with NUL characters of what
 * ends with each of them. model NULL: the default one. */
int show_tokens(const char *model, const char *path, struct err *err) MUST_CHECK;

/* Prints the token ids of one context of a stream on a line, the same as in evp-profile and evp-pack. model, chat NULL:
 * the default model, its own chat template. ERR_FORMAT: the stream has no such context. */
struct show_prompt {
    const char *id, *model, *chat;
};
int show_ids(const char *path, const struct show_prompt *prompt, struct err *err) MUST_CHECK;

/* Finds the longest prefix of a prompt that is placed in n folders of tiers, and what comes nearer but differs.
 * `prompt` is a file with a user's message, or with a request's body in JSON; model, chat NULL: as above; name_space
 * NULL: the model's digest. */
struct show_find {
    const char *prompt, *model, *chat, *name_space;
};
int show_find(struct sheet *s, char *const *path, int n, const struct show_find *asked, struct err *err) MUST_CHECK;

/* The metrics of evp_write_metrics() in a file, or in all files *.prom of a folder. */
int show_metrics(struct sheet *s, const char *path, struct err *err) MUST_CHECK;
/* The compression methods; those of plug-ins too. */
void show_methods(struct sheet *s);
/* The families of models, and what is done with them. */
void show_models(struct sheet *s);

#endif
