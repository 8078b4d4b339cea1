/* dataset.h - the LongBench datasets and the prompts they are published with.
 *
 * A published prompt (LongBench's config/dataset2prompt.json) has the document in its middle. It is split there: what
 * stands up to and including the document is the text that a serving system caches and that the papers compress;
 * what follows is the `ask`, with {question} where the published prompt has {input}. So text + ask with the row's own
 * input is the published prompt to the byte, for every dataset whose prompt asks for an input behind the document. In
 * the few-shot sets (trec, triviaqa, samsum, lsht) the document is the examples. No prompt has its input in front.
 *
 * Five prompts have no place for a question: gov_report, multi_news and vcsum (summaries), passage_count and lcc. There
 * what follows the document, trimmed, becomes the one question that came with the dataset, and the ask is DATASET_ASK,
 * so that other questions can be put to these texts as well. CONTEXT_PLAIN_ASK would not do: it asks for brevity, and
 * these instructions ask for a page.
 *
 * LongBench-E has the same prompts under names that end in _e.
 *
 * To add a dataset: (1) its line in the table of dataset.c (2) the SHA-256 of its prompt in tests/unit/datasets.c
 * (3) a row in tests/data/longbench/ (4) if its rows have other fields than LongBench's, a reader beside row.c.
 */
#ifndef EVP_DATASET_H
#define EVP_DATASET_H

#include "base/context.h"

struct dataset {
    const char *name;
    const char *before; // the document
    const char *after;  // it; with {question}, or without
};

/* For prompts without a place for a question; the other of the two wordings that made the default model answer. */
#define DATASET_ASK "\n\nQuestion: {question}"

/* By name, with or without _e; NULL when it is none of LongBench's. */
const struct dataset *dataset_find(const char *name);

/* The table's rows, for whoever lists them; NULL behind the last. */
const struct dataset *dataset_at(int i);

/* What a row of a dataset holds. */
struct dataset_row {
    const char *document, *input; // input "" or NULL: none
    const struct json *answers;   // a list of strings, a string, or NULL
};

/* Fills text, ask and input of a zeroed context; the caller sets id and dataset and releases it also when this failed.
 * d NULL: the document is the text and CONTEXT_PLAIN_ASK the ask. */
int dataset_prompt(const struct dataset *d, const struct dataset_row *row, struct context *c,
                   struct err *err) MUST_CHECK;

#endif
