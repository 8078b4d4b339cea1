# Threads spin for a moment only, unless the environment says how: what libgomp read is told, of the tool as it began and of
# the one that it started in its place.
spins() { "$@" --version 2>&1 | sed -n 's/.*GOMP_SPINCOUNT = //p'; }
unset GOMP_SPINCOUNT OMP_WAIT_POLICY
for tool in evp-profile evp-pack evp-score; do
	echo "$tool: $(OMP_DISPLAY_ENV=VERBOSE spins $tool | tail -n 1)"
	echo "$tool: $(OMP_DISPLAY_ENV=VERBOSE GOMP_SPINCOUNT=5 spins $tool)"
	[ "$(OMP_DISPLAY_ENV=VERBOSE OMP_WAIT_POLICY=active spins $tool | wc -l)" = 1 ] || echo "$tool: started twice"
done
