/* source.h - a text as the offline generator sees it, and one question of each kind about one piece of it. */
#ifndef EVP_SOURCE_H
#define EVP_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "qgen/segments.h"

#include <stdbool.h>
#include <stddef.h>

enum source_kind {
    SOURCE_NONE,    // ends a list
    SOURCE_REPEAT,  // the sentence that starts with these words
    SOURCE_AFTER,   // what follows these words, from the middle of a sentence
    SOURCE_NUMBER,  // the number behind these words
    SOURCE_NAME,    // the name behind these words
    SOURCE_MEANING, // how a term is defined
    SOURCE_SECTION, // what stands under a heading
    SOURCE_NEXT,    // what follows a short piece: a line of code, of a list or of a dialogue
    SOURCE_KINDS
};

struct source {
    const char *text; // borrowed
    size_t n;
    struct pieces pieces;
    int first;       // the first piece behind the instructions a template opens with
    size_t begin;    // where it stands
    struct buf flat; // the text with every run of white space made one blank: a quotation must occur in it once
    struct map labels;
    int *label_count; // (labels.n) how many pieces open with it
};

int source_open(struct source *s, const char *text, struct err *err) MUST_CHECK;
void source_close(struct source *s);

/* Adds a question of the kind about piece i to *out; false when the piece does not support it. Look at buf_failed(). */
bool source_question(const struct source *s, enum source_kind kind, int i, struct buf *out);

#endif
