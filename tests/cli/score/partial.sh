# A context that was profiled without the reference is said and left without quality; the others are scored.
printf 'config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\ncontext\ta\nquestion\ttrain\tparis\tparis\ncontext\tb\nquestion\ttrain\t-\tparis\n' |
	"$BUILD/tests/tools/make-profile" profile.h5 tiny
evp-score profile.h5 --embedder "$DATA/minibert" -o table.h5
