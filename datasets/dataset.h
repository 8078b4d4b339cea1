/* dataset.h - the datasets of LongBench, LongBench v2 and SCBench, and their published prompts.
 *
 * A published prompt (LongBench's config/dataset2prompt.json) has the document in its middle. It is split after it: the
 * beginning, up to and including the document, is the text that a serving system caches and that the papers compress;
 * the rest is the `ask`, with {question} where the published prompt has {input}. So text + ask with the row's own input
 * is the published prompt to the byte, for every dataset that asks for an input after the document. In the few-shot
 * sets (trec, triviaqa, samsum, lsht) the document is the examples. No prompt has its input in front.
 *
 * Five prompts have no {input}: gov_report, multi_news and vcsum (summaries), passage_count and lcc. There the text
 * after the document, trimmed, becomes the dataset's one question, and the ask is DATASET_ASK, so that these texts can
 * take other questions as well. CONTEXT_PLAIN_ASK would not do: it asks for brevity, and these instructions ask for a
 * page.
 *
 * SCBench's prompts are those of its first turns: every question is asked about the context alone, as in its mode of
 * many requests. Its other tasks have the context, an empty line and the question.
 *
 * LongBench-E has the same prompts under names that end in _e.
 *
 * To add a dataset:
 *   (1) datasets/dataset.c: its line in `table`
 *   (2) tests/unit/datasets.c: its name and the SHA-256 of its published prompt in `published`
 *   (3) tests/data/longbench/NAME.jsonl: a short row of it
 *   (4) tests/cli/import/NAME.sh: prints the context made of the row, like tests/cli/import/ten.sh;
 *       `tests/cli/run --update` writes its output, for you to check
 *   (5) if its rows have other fields than LongBench's: a reader in datasets/row.c, the fields in datasets/row.h, and
 *       rows that cannot be used in tests/unit/datasets.c
 */
#ifndef EVP_DATASET_H
#define EVP_DATASET_H

#include "formats/context.h"

struct dataset {
    const char *name;
    const char *before; // the prompt before the document
    const char *after;  // and after it, with or without {question}
};

/* For prompts without {input}. Two wordings made the default model answer; CONTEXT_PLAIN_ASK is the other. */
#define DATASET_ASK "\n\nQuestion: {question}"

#define SCBENCH_ASK "\n\n{question}"

/* By name, with or without _e; NULL: no such dataset has a prompt here. */
const struct dataset *dataset_find(const char *name);

/* The fields of a dataset's row. */
struct dataset_row {
    const char *document, *input; // input "" or NULL: none
    const struct json *answers;   // a list of strings and numbers, one of them, or NULL
    const char *ask;              // instead of the dataset's prompt; NULL: that is used
};

/* Fills text, ask and inputs of a zeroed context. The caller sets id and dataset, and releases the context after a
 * failure too. d NULL: the document is the text and CONTEXT_PLAIN_ASK the ask. */
int dataset_prompt(const struct dataset *d, const struct dataset_row *row, struct context *c,
                   struct err *err) MUST_CHECK;

#endif
