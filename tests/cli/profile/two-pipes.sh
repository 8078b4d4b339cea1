evp-profile - - -o p.h5
