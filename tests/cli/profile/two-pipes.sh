# Contexts and questions cannot both come from standard input.
evp-profile - - -o p.h5
