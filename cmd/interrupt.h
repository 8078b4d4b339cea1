/* interrupt.h - Ctrl-C on work that can go on. */
#ifndef EVP_INTERRUPT_H
#define EVP_INTERRUPT_H

/* From now on SIGINT says that the same command goes on, before it ends the process. */
void interrupt_goes_on(void);

#endif
