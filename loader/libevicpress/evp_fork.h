/* evp_fork.h - lets stores and plans survive fork(). A process may fork while some of its threads are inside the
 * library; the child has only the thread that forked, and would wait forever for a lock of another thread.
 *
 * So the library keeps a list of the process's stores and plans, its only global state. fork() takes the lock of each
 * before and releases it after, in parent and child. These locks are held briefly. Locks that may be held for long are
 * renewed in the child by `in_child`, which also discards the unfinished work of the vanished threads.
 */
#ifndef EVP_EVP_FORK_H
#define EVP_EVP_FORK_H

#include <pthread.h>

struct fork_safe {
    pthread_mutex_t lock; // the owner's
    void (*in_child)(struct fork_safe *f);
    struct fork_safe *next, **here; // of the list
};

void fork_safe_init(struct fork_safe *f, void (*in_child)(struct fork_safe *f));
void fork_safe_release(struct fork_safe *f); // only after fork_safe_init()

/* In a child: makes a mutex usable that another thread of the parent may have held. */
void fork_safe_renew(pthread_mutex_t *mutex);

#endif
