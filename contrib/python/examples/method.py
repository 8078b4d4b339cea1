#!/usr/bin/env python3
"""method.py LIBRARY.so INCLUDE_DIR - a compression method in Python, compiled into a shared object for --plugin.

It keeps the tokens whose keys are farthest from the mean key. INCLUDE_DIR has evp_method.h. Needs cffi, NumPy, a C
compiler and Python's headers (Debian: python3-cffi python3-numpy python3-dev).

    method.py libfar_keys.so /usr/local/include
    evp-profile ... --plugin ./libfar_keys.so --configs far_keys:drop=0.5

The Python inside looks for its modules beside the first python3 in PATH. If that is another one ("initialization code
failed"), say which with PYTHONHOME: for Debian's, PYTHONHOME=/usr.
"""
import os
import re
import shutil
import sys
import tempfile

import cffi

library, include = sys.argv[1:]
with open(os.path.join(include, "evp_method.h")) as f:
    struct = re.search(r"struct evp_head \{.*?^\};", f.read(), re.S | re.M).group()

ffi = cffi.FFI()
ffi.cdef(re.sub(r"//.*", "", struct))
ffi.embedding_api("int score(const struct evp_head *head, const double *value, float *score, char *why);")
ffi.set_source("_evp_method", """
    #include <evp_method.h>
    static int score(const struct evp_head *, const double *, float *, char *);
    const struct evp_method evp_method = { .abi = EVP_METHOD_ABI, .size = sizeof(struct evp_method),
        .name = "far_keys", .summary = "keeps keys far from the mean key", .score = score };
    """, include_dirs=[include])
ffi.embedding_init_code("""
    import numpy as np
    from _evp_method import ffi

    def array(pointer, *shape):
        count = int(np.prod(shape))
        return np.frombuffer(ffi.buffer(pointer, count * 4), np.float32).reshape(shape)

    @ffi.def_extern(onerror=lambda *error: None, error=1)
    def score(head, value, score, why):
        k = array(head.k, head.n_tokens, head.head_dim)
        array(score, head.n_tokens)[:] = np.linalg.norm(k - k.mean(axis=0), axis=1)
        return 0
    """)
with tempfile.TemporaryDirectory() as folder:
    shutil.copy(ffi.compile(tmpdir=folder, target="_evp_method.*"), library)
