# Tool and library need no model, BLAS, CUDA or HDF5; the library shows the functions of evicpress.h and nothing else. libgomp
# is the planner's, which takes over a plan of many contexts in several threads.
ldd "$BUILD/evp-load" "$BUILD/libevicpress.so" | grep -E 'dnnl|blas|libcuda|hdf5|python' && exit 1
ldd "$BUILD/evp-load" | grep gomp && exit 1
ldd "$BUILD/evp-plan" | grep -E 'dnnl|blas|libcuda|python' && exit 1
nm -D --defined-only "$BUILD/libevicpress.so" | sed 's/^[0-9a-f]* //'
