/* wordpiece_internal.h - a vocabulary in memory, between wordpiece_vocabulary.c, which reads it, and wordpiece.c. */
#ifndef EVP_WORDPIECE_INTERNAL_H
#define EVP_WORDPIECE_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "embed/wordpiece.h"

#include <stdbool.h>

struct wordpiece_special {
    char *text; // not empty
    size_t n;
    int32_t id;
};

struct wordpiece {
    struct map names; // the tokens as written
    int32_t *id;      // number in names -> id
    size_t longest;   // bytes of the longest token
    int n_vocab;
    int32_t unk, cls, sep;
    struct {
        struct wordpiece_special *at;
        int n, cap;
    } specials;              // each text once
    bool opens_special[256]; // is there one that begins with this byte?
};

enum vocabulary_file { VOCAB_TXT, TOKENIZER_JSON };

/* Both fill a zeroed *w: from one file's text, or from the files of a folder. The caller releases *w, after a failure
 * too. */
int vocabulary_parse(struct wordpiece *w, const struct buf *text, enum vocabulary_file kind,
                     struct err *err) MUST_CHECK;
int vocabulary_read(struct wordpiece *w, const char *dir, struct err *err) MUST_CHECK;
void vocabulary_release(struct wordpiece *w);

#endif
