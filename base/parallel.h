/* parallel.h - work that several threads share. They are there for one call, take no signals, and are joined before it
 * returns, so that libevicpress may use it in somebody else's process, where OpenMP would leave its threads behind: a child
 * of fork() would wait for them for ever.
 *
 *     parallel_do(parallel_threads(), n_pieces, parse_piece, &parsing);        // parse_piece(&parsing, i) for all
 *
 * What comes out must not depend on which thread did what, or when.
 */
#ifndef EVP_PARALLEL_H
#define EVP_PARALLEL_H

/* As many threads as this one may use processors, at most 8: a machine that serves has other things to do too. */
int parallel_threads(void);

/* Calls work(arg, i) for i from 0 to n - 1, each once, begun in this order, in this thread and n_threads - 1 more, 63
 * at most; fewer where there is less to do, or no memory for them. */
void parallel_do(int n_threads, int n, void (*work)(void *arg, int i), void *arg);

#endif
