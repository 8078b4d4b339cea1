# Without --tiers there is nothing to plan for.
evp-plan "$DATA/table.h5"
