/* waiting.h - how the threads of a tool that computes wait for each other: asleep, so that a busy neighbour's share of
 * the cores is not taken from the thread that all wait for. libgomp spins instead unless the environment says otherwise,
 * and reads it before main, so the tool starts itself once more.
 */
#ifndef EVP_WAITING_H
#define EVP_WAITING_H

/* The first thing in main. Returns where the environment says how to wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT), or where
 * the tool cannot be started again. */
void wait_asleep(char **argv);

#endif
