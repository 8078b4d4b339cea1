/* fenced.h - the reference behind a fence: its device memory can be touched inside ops alone.
 *
 * Every allocation, weights too, is mapped by itself and closed by mprotect; an op, write, read, copy and repeat open
 * all of them and close them again. So code above kernels/ that reads or writes through a device address ends with
 * SIGSEGV, as it would on a GPU. A page that is never open follows each allocation, and fresh memory is all NAN.
 * Closing the backend fails the test when memory was not freed.
 */
#ifndef EVP_FENCED_H
#define EVP_FENCED_H

#include "kernels/backend.h"

/* dtype: "f32" or "bf16". Never NULL: it ends the test instead. */
struct backend *fenced_open(const char *dtype);

#endif
