/* array.h - arrays that grow. An array is any struct with these members, zeroed at first and freed with free(a->at):
 *
 *     struct names { char **at; int n, cap; };              // n in use, space for cap; both int or both size_t
 *
 *     if (ARRAY_PUSH(&names, text))                         // one more element
 *         return err_nomem(err);
 *     if (ARRAY_GROW(&names, names.n + 8))                  // space for 8 more; n stays
 *         return err_nomem(err);
 *
 * Both give 0; or -1 without memory, with the array unchanged. An array with int counts has at most INT_MAX elements.
 */
#ifndef EVP_ARRAY_H
#define EVP_ARRAY_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_GROW(a, want)                                                                                            \
    ((size_t)(want) <= (size_t)(a)->cap || ((a)->cap = (__typeof__((a)->cap))array_grow(                               \
                                                &(a)->at, sizeof(*(a)->at), (size_t)(want), (size_t)(a)->cap,          \
                                                sizeof((a)->cap) < sizeof(size_t) ? INT_MAX : SIZE_MAX),               \
                                            (size_t)(want) <= (size_t)(a)->cap)                                        \
         ? 0                                                                                                           \
         : -1)

#define ARRAY_PUSH(a, ...) (ARRAY_GROW(a, (size_t)(a)->n + 1) ? -1 : ((a)->at[(a)->n++] = (__VA_ARGS__), 0))

/* For ARRAY_GROW alone. slot: the address of a pointer to `cap` elements of `size` bytes. Makes space for `want` or
 * more, at most `limit`. Returns the new cap, or the old one without memory or above the limit. */
size_t array_grow(void *slot, size_t size, size_t want, size_t cap, size_t limit);

#endif
