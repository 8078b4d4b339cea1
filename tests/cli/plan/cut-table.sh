# A table that was cut is refused.
head -c 9000 "$DATA/table.h5" >cut.h5
evp-plan cut.h5 --tiers "$DATA/tiers.json"
