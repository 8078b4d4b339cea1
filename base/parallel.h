/* parallel.h - a loop on several threads, and work beside the caller's. The threads block all signals; those of a loop
 * are joined before the call returns, so libevicpress can use them in a host's process. OpenMP would leave its threads
 * behind, and a child of fork() would wait for them forever.
 *
 *     parallel_do(parallel_threads(), n_blocks, parse_block, &parsing);        // parse_block(&parsing, i) for all i
 *
 * Results must not depend on which thread does what, or when.
 */
#ifndef EVP_PARALLEL_H
#define EVP_PARALLEL_H

/* The number of processors that this thread may use. */
int parallel_cores(void);

/* The same, at most 8: a serving machine has other work too. */
int parallel_threads(void);

/* Calls work(arg, i) once for each i from 0 to n - 1, started in this order, on this thread and at most n_threads - 1
 * (at most 63) others; fewer if there is less work or no memory. */
void parallel_do(int n_threads, int n, void (*work)(void *arg, int i), void *arg);

/* Begins work(arg), which returns NULL, on a thread beside the caller's. NULL: there is no memory or no thread for it.
 * parallel_end() waits for it and frees the task. */
struct parallel_task;
struct parallel_task *parallel_begin(void *(*work)(void *arg), void *arg);
void parallel_end(struct parallel_task *task);

#endif
