/* stamp.h - finds prompts that are alike but for a few bytes near their beginning: a time, a date, an id, a question in
 * front of its document. A cache of prefixes finds nothing of them behind these bytes.
 *
 *     stamps_take(&s, text, n)                      each prompt, once
 *     if (stamps_any(&s)) ...
 *     group = stamps_cut(&s, text, n, &n_cut)       each prompt again
 *
 * Prompts belong together that have the same minimum over the hashes of all windows of 64 bytes in their heads (A.
 * Broder, On the resemblance and containment of documents, 1997; with one permutation), so pairs are not compared. The
 * first of a group stays, and the others are compared with it.
 */
#ifndef EVP_STAMP_H
#define EVP_STAMP_H

#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAMP_HEAD = 2048, STAMP_MAX = 512 }; // bytes that are looked at, and of what changes

struct prompt_stamp {
    char *head; // of the first prompt
    size_t n_head;
    size_t begin, end; // what changes, in this head; begin >= end: nothing
    int n_vain;        // prompts that agree nowhere behind what differs
    int64_t n;         // prompts that are alike but for that: counted by the caller
};

struct stamps {
    struct map keys; // minimum -> group
    struct prompt_stamp *at;
};

/* False without memory. */
bool stamps_take(struct stamps *s, const char *text, size_t n);

bool stamps_any(const struct stamps *s);

/* The group of a prompt that is like others but for the n_cut bytes from its `begin` on; NULL: there is none. */
struct prompt_stamp *stamps_cut(const struct stamps *s, const char *text, size_t n, size_t *n_cut);

void stamps_release(struct stamps *s); // zeroed is fine

#endif
