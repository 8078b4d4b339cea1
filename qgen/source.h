/* source.h - a text as the offline generator sees it, and one question of each kind about one segment of it.
 *
 * A quotation in a question occurs in the text exactly once, apart from white space. Instructions that open a prompt
 * template and labels that repeat are never quoted.
 */
#ifndef EVP_SOURCE_H
#define EVP_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "qgen/repeats.h"
#include "qgen/segments.h"

#include <stdbool.h>
#include <stddef.h>

enum source_kind {
    SOURCE_NONE,    // ends a list
    SOURCE_REPEAT,  // the sentence that starts with these words
    SOURCE_AFTER,   // what follows these words, from the middle of a sentence
    SOURCE_NUMBER,  // the number after these words
    SOURCE_NAME,    // the name after these words
    SOURCE_MEANING, // how a term is defined
    SOURCE_SECTION, // what a section says
    SOURCE_NEXT,    // what follows a short segment: a line of code, of a list or of a dialogue
    SOURCE_KINDS
};

struct source {
    const char *text; // borrowed
    size_t n;
    struct segments segments;
    int first;       // the first segment after the instructions that open a template
    size_t begin;    // its first byte
    struct buf flat; // the text with every run of white space made one blank; quotations occur in it once
    size_t *flat_at; // (segments.n) where each segment begins in flat
    size_t searched; // bytes that were searched for quotations; after a few times the text, repeats are found instead
    struct repeats repeats; // of flat
    struct map labels;
    int *label_count; // (labels.n) how many segments begin with it
};

/* The text is borrowed until source_close(). */
int source_open(struct source *s, const char *text, struct err *err) MUST_CHECK;
void source_close(struct source *s);

/* Adds a question of the kind about segment i to *out; false, and nothing added, when the segment does not support it.
 * The caller checks buf_failed(). */
bool source_question(struct source *s, enum source_kind kind, int i, struct buf *out);

#endif
