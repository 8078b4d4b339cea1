evp-plan "$DATA/table.h5"
