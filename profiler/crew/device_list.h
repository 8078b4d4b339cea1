/* device_list.h - the value of --devices. */
#ifndef EVP_DEVICE_LIST_H
#define EVP_DEVICE_LIST_H

#include "base/err.h"

enum { DEVICES_MAX = 64 };

struct device_list {
    int at[DEVICES_MAX], n;
};

/* "0,1,.." or "all". ERR_USAGE: another text, a number twice, or one that no device has; ERR_DEVICE: there is none. A
 * child process asks CUDA, because a process that has asked cannot fork. */
int device_list_read(struct device_list *list, const char *text, struct err *err) MUST_CHECK;

#endif
