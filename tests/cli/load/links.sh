# Tool and library need no model, BLAS, CUDA or HDF5; the library shows the functions of evp.h and nothing else.
ldd "$BUILD/evp-load" "$BUILD/libevp.so" | grep -E 'dnnl|blas|cuda|hdf5|python|gomp' && exit 1
ldd "$BUILD/evp-plan" | grep -E 'dnnl|blas|cuda|python' && exit 1
nm -D --defined-only "$BUILD/libevp.so" | sed 's/^[0-9a-f]* //'
