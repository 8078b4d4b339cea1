/* payload.c - any bytes as a payload: refused with a sentence, or every tensor of it lies inside the bytes. */
#include "methods/payload.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct payload p;
    struct err err;

    for (int check = PAYLOAD_HEADER; check <= PAYLOAD_WHOLE; check++) {
        if (payload_parse(&p, data, n, (enum payload_check)check, &err))
            continue;
        for (int i = 0; i < p.st.n; i++)
            if ((const uint8_t *)p.st.tensor[i].at + p.st.tensor[i].bytes > data + n)
                abort();
        payload_close(&p);
    }
    return 0;
}
