/* replay.c - gives stored inputs to a fuzz target without a fuzzer, so that they are plain tests. */
#include "base/buf.h"
#include "base/file.h"

#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct buf input = { 0 };
        struct err err;
        if (file_read(&input, argv[i], SIZE_MAX / 4, &err)) {
            fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
        LLVMFuzzerTestOneInput((const uint8_t *)buf_str(&input), input.n);
        buf_release(&input);
    }
    return 0;
}
