/* interrupt.c - one sentence from a signal handler; then the signal has its usual effect. */
#include "cmd/interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static void say_and_die(int sig)
{
    static const char text[] = "\ninterrupted; the same command goes on where it stopped\n";

    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(1);
    raise(sig); // SA_RESETHAND: the default action, when this handler has returned
}

void interrupt_goes_on(void)
{
    struct sigaction act = { .sa_handler = say_and_die, .sa_flags = (int)SA_RESETHAND };

    sigaction(SIGINT, &act, NULL);
}
