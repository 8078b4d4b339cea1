# A driver that is too old, no device, one that is too old, one without memory, an attention that it does not have: each
# has its sentence. What does not fit is refused with the numbers.
. "$TOP/tests/cli/cuda/device.inc"
EMU_DEVICES=driver profile --backend cuda -o p.h5
EMU_DEVICES=0 profile --backend cuda -o p.h5
EMU_DEVICES=0 CUDA_VISIBLE_DEVICES='' profile --backend cuda -o p.h5
EMU_SM=75 profile --backend cuda -o p.h5
EVP_CUDA_ATTENTION=fast profile -o p.h5
EMU_SM=89 EVP_CUDA_ATTENTION=wgmma profile -o p.h5
EVP_CUDA_STATES=1G profile -o p.h5
EVP_CUDA_PIECES=9 profile -o p.h5
EMU_MEMORY=33554432 profile --backend cuda -o p.h5
EMU_MEMORY=33554432 profile -o p.h5 # a device there is: auto does not go on without it
profile --backend cuda --memory 1M -o p.h5
test ! -e p.h5 || echo "a file was written"
evp-tiers -q --tier name=far,uri=redis://cache:6379,read=100G,write=1G,latency=0 | grep -c '"device_bytes_per_s":[1-9]'
