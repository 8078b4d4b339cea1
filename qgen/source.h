/* source.h - a text prepared for the offline generator, and one question of each kind about one segment of it.
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
    SOURCE_AFTER,   // the text after these words, from the middle of a sentence
    SOURCE_NUMBER,  // the number after these words
    SOURCE_NAME,    // the name after these words
    SOURCE_MEANING, // how a term is defined
    SOURCE_SECTION, // the contents of a section
    SOURCE_NEXT,    // the text after a short segment: a line of code, of a list or of a dialogue
    SOURCE_KINDS
};

struct source {
    const char *text; // borrowed
    size_t n;
    struct segments segments;
    int first;       // the first segment after the instructions that open a template
    size_t begin;    // its first byte
    struct buf flat; // the text with white space collapsed to single blanks; quotations occur in it once
    size_t *flat_at; // (segments.n) where each segment begins in flat
    size_t searched; // bytes searched for quotations so far; after many times the text, `repeats` is built instead
    struct repeats repeats; // of flat
    struct map labels;
    int *label_count; // (labels.n) segments that begin with the label
};

/* The text is borrowed until source_close(). */
int source_open(struct source *s, const char *text, struct err *err) MUST_CHECK;
void source_close(struct source *s);

/* Adds a question of the kind about segment i to *out; false, and nothing added, when the segment does not support it.
 * The caller checks buf_failed(). */
bool source_question(struct source *s, enum source_kind kind, int i, struct buf *out);

#endif
