/* waiting.h - waiting threads of a computing tool sleep soon. libgomp's threads spin for long: if another process runs,
 * they take the core from the thread that all wait for. With GOMP_SPINCOUNT=1000 they sleep after a thousand turns.
 * libgomp reads the variable before main(), so the tool starts itself again. docs/profiling.md has figures.
 */
#ifndef EVP_WAITING_H
#define EVP_WAITING_H

/* Call it first in main(). Returns if the environment has OMP_WAIT_POLICY or GOMP_SPINCOUNT, or if the tool cannot be
 * started again. */
void wait_briefly(char **argv);

#endif
