# Each wrong call or input, its status and its sentence; nothing is written.
profile() { "$BUILD/tests/tools/make-profile" "$1" "$2"; }
refuse() { evp-score --embedder "${embedder:-$DATA/minibert}" "$@" -o table.h5; echo $?; }
configs='config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\n'
printf "${configs}context\ta\nquestion\ttrain\tparis\tparis\n" | profile good.h5 tiny
printf "${configs}context\tb\nquestion\ttrain\tparis\tparis\n" | profile other.h5 other
printf "${configs}context\tb\nquestion\ttrain\t-\tparis\n" | profile alone.h5 tiny
head -c 3000 good.h5 >cut.h5
echo '{"evp":"tiers","version":1,"tiers":[]}' >tiers.json
refuse good.h5 other.h5
refuse alone.h5
refuse cut.h5
refuse none.h5
refuse good.h5 --tiers tiers.json
refuse good.h5 --backend tpu
embedder=. refuse good.h5
evp-score good.h5
echo $?
EVP_MODELS=. evp-score good.h5 -o table.h5
echo $?
test ! -e table.h5 || echo "a table was written"
