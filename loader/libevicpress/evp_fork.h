/* evp_fork.h - what must survive fork(). A process may fork while some of its threads are inside the library; the child
 * has only the thread that forked, and would wait for ever for a lock that another one held.
 *
 * So the process's stores and plans are in a list, the one thing that the library keeps outside of them. fork() takes
 * the lock of each before and gives it back after, in the parent and in the child. These locks are held for moments. A
 * lock that is held for long is made new in the child: `in_child` does so, and forgets what the vanished threads were
 * at.
 */
#ifndef EVP_EVP_FORK_H
#define EVP_EVP_FORK_H

#include <pthread.h>

struct fork_safe {
    pthread_mutex_t lock; // of the owner's
    void (*in_child)(struct fork_safe *f);
    struct fork_safe *next, **here; // of the list
};

void fork_safe_init(struct fork_safe *f, void (*in_child)(struct fork_safe *f));
void fork_safe_release(struct fork_safe *f); // only after fork_safe_init()

/* In a child: a mutex that another thread of the parent may have held. */
void fork_safe_renew(pthread_mutex_t *mutex);

#endif
