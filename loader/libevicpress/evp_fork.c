/* evp_fork.c - the list of stores and plans that fork() goes through. */
#include "loader/libevicpress/evp_fork.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handlers = PTHREAD_ONCE_INIT;
static struct fork_safe *list;

static void before(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct fork_safe *f = list; f; f = f->next)
        pthread_mutex_lock(&f->lock);
}

static void after(void)
{
    for (struct fork_safe *f = list; f; f = f->next)
        pthread_mutex_unlock(&f->lock);
    pthread_mutex_unlock(&list_lock);
}

static void in_child(void)
{
    for (struct fork_safe *f = list; f; f = f->next)
        f->in_child(f);
    after();
}

static void set_handlers(void)
{
    pthread_atfork(before, after, in_child); /* fails only without memory: then fork() is not handled */
}

void fork_safe_init(struct fork_safe *f, void (*child)(struct fork_safe *f))
{
    pthread_once(&handlers, set_handlers);
    pthread_mutex_init(&f->lock, NULL);
    f->in_child = child;
    pthread_mutex_lock(&list_lock);
    f->next = list;
    f->here = &list;
    if (list)
        list->here = &f->next;
    list = f;
    pthread_mutex_unlock(&list_lock);
}

void fork_safe_release(struct fork_safe *f)
{
    pthread_mutex_lock(&list_lock);
    *f->here = f->next;
    if (f->next)
        f->next->here = f->here;
    pthread_mutex_unlock(&list_lock);
    pthread_mutex_destroy(&f->lock);
}

void fork_safe_renew(pthread_mutex_t *mutex)
{
    pthread_mutex_init(mutex, NULL);
}
