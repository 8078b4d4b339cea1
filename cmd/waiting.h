/* waiting.h - how the threads of a tool that computes wait for each other. libgomp's spin for long, which takes the core
 * from the thread that all wait for as soon as another process runs; GOMP_SPINCOUNT=1000 lets them sleep after a
 * thousand turns. libgomp reads that before main, so the tool starts itself once more. docs/profiling.md has figures.
 */
#ifndef EVP_WAITING_H
#define EVP_WAITING_H

/* The first thing in main. Returns where the environment says how to wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT), or where
 * the tool cannot be started again. */
void wait_briefly(char **argv);

#endif
