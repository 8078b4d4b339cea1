/* device_list.c - numbers of CUDA devices, compared with the devices that are there. */
#include "profiler/crew/device_list.h"

#include "base/parse.h"
#include "kernels/cuda/cuda.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct counted {
    int n;
    struct err err; // code 0: none
};

static void count_in_child(int to)
{
    struct counted c = { 0 };

    if (!cuda_devices(&c.n, &c.err))
        c.err.code = 0;
    _exit(write(to, &c, sizeof(c)) != (ssize_t)sizeof(c));
}

/* How many devices there are. */
static int count_devices(int *n, struct err *err)
{
    struct counted c;
    int ends[2];

    if (pipe(ends))
        return err_set(err, ERR_FAIL, "cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        count_in_child(ends[1]);
    int why = errno;
    close(ends[1]);
    bool counted = child > 0 && read(ends[0], &c, sizeof(c)) == (ssize_t)sizeof(c); // less than a pipe holds at once
    close(ends[0]);
    if (child < 0)
        return err_set(err, ERR_FAIL, "cannot start a process: %s", strerror(why));
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (!counted)
        return err_set(err, ERR_DEVICE, "looking for NVIDIA GPUs ended the process that did");
    *n = c.n;
    if (c.err.code)
        *err = c.err;
    return c.err.code;
}

static int add(struct device_list *list, const char *text, int n, struct err *err)
{
    int64_t number;

    if (!parse_int(text, &number))
        return err_set(err, ERR_USAGE, "--devices: '%s' is not a number; give 0,1,.. or all", text);
    if (number < 0 || number >= n)
        return err_set(err, ERR_USAGE, "--devices: there is no device %lld; CUDA has %d here, counted from 0",
                       (long long)number, n);
    for (int i = 0; i < list->n; i++)
        if (list->at[i] == number)
            return err_set(err, ERR_USAGE, "--devices: device %lld is named twice", (long long)number);
    list->at[list->n++] = (int)number;
    return 0;
}

int device_list_read(struct device_list *list, const char *text, struct err *err)
{
    int n = 0;

    *list = (struct device_list){ .n = 0 };
    if (count_devices(&n, err))
        return err->code;
    n = n < DEVICES_MAX ? n : DEVICES_MAX;
    if (strcmp(text, "all") == 0) {
        while (list->n < n) {
            list->at[list->n] = list->n;
            list->n++;
        }
        return 0;
    }
    for (const char *at = text;; at++) {
        char word[16];
        size_t length = strcspn(at, ",");
        size_t kept = length < sizeof(word) ? length : sizeof(word) - 1;
        memcpy(word, at, kept);
        word[kept] = '\0';
        if (add(list, word, n, err))
            return err->code;
        at += length;
        if (!*at)
            return 0;
    }
}
