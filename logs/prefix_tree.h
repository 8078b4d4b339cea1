/* prefix_tree.h - a tree of the prefixes of texts: one node per chunk, with the number of texts that contain it.
 *
 * A text is cut into chunks of PREFIX_CHUNK bytes from its beginning. A chunk's key is the XXH3 of its bytes and of the
 * key of the chunk before it, so a key stands for all of the text up to its end, and one table of keys is the whole
 * tree. The leaves are whole texts, so equal texts are known. No text is kept: 24 bytes a node and 8 to 16 of the
 * table. Two different prefixes have the same key with a probability of about nodes^2 / 2^65, four in ten million for
 * a gigabyte.
 */
#ifndef EVP_PREFIX_TREE_H
#define EVP_PREFIX_TREE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { PREFIX_CHUNK = 256 };

struct prefix_node {
    uint64_t key;
    int32_t parent; // -1: a text begins here; always smaller than the node's own number
    uint32_t uses;  // texts that begin with this prefix and continue after it
    uint32_t talks; // conversations of these texts
    uint32_t depth; // chunks up to here, this one included; 0: a whole text
};

struct prefix_tree {
    struct prefix_node *at;
    int n, cap;
    int32_t *slot; // (n_slots): a node, or -1
    size_t n_slots;
};

/* The key after a chunk of PREFIX_CHUNK bytes. The caller chooses the key before the first chunk: texts that begin with
 * different keys have nothing in common. */
uint64_t prefix_key(uint64_t before, const char *chunk);

/* The node of a key, or -1. */
int32_t prefix_find(const struct prefix_tree *t, uint64_t key);

/* Goes from *node (-1: before the first chunk) to the node of the next chunk's key, which is added if it is new. */
int prefix_step(struct prefix_tree *t, uint64_t key, int32_t *node, struct err *err) MUST_CHECK;

/* Counts a text of n bytes, with a key before its first chunk. Its last byte is not in any chunk: something must
 * follow a prefix. A text shorter than a chunk has no node. `from`: bytes of a conversation that is counted. */
struct prefix_text {
    uint64_t key;
    const char *at;
    size_t n, from;
};
int prefix_add(struct prefix_tree *t, const struct prefix_text *text, struct err *err) MUST_CHECK;

struct prefix_choice {
    uint32_t min_uses; // conversations
    size_t min_bytes;
    int top; // 0: all
};

/* Marks prefixes that are worth a cache: at least min_bytes long, with texts of at least min_uses conversations that do
 * not begin with a deeper marked prefix, not all of them equal; of these the `top` with most bytes * such texts. A
 * question that is asked again and again thus counts for the text before it. mark[i] becomes the number of node i among
 * the marked ones, in the order of the nodes, or -1. Returns the number of marked nodes, or an error. */
int prefix_choose(const struct prefix_tree *t, const struct prefix_choice *choice, int32_t *mark,
                  struct err *err) MUST_CHECK;

void prefix_tree_release(struct prefix_tree *t); // zeroed is fine

#endif
