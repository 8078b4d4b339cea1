# One release, defined in evp.h: --version of every tool prints it (a build of another commit adds that commit), and
# evp.pc, the numbers in evp.h and CHANGELOG.md agree. No file that a tool writes depends on it.
version=$(sed -n 's/^#define EVP_VERSION  *"\(.*\)"/\1/p' "$TOP/loader/libevp/evp.h")
[ "$version" ] || echo "evp.h defines no version"
for tool in "$BUILD"/evp "$BUILD"/evp-*; do
	[ -x "$tool" ] && [ -f "$tool" ] || continue
	said=$("$tool" --version)
	name=${tool##*/}
	case $said in
	"$name (EvicPress) $version" | "$name (EvicPress) $version+"?*) ;;
	*) echo "$name --version: '$said'" ;;
	esac
done
numbers=$(printf '#include "loader/libevp/evp.h"\nparts EVP_VERSION_MAJOR EVP_VERSION_MINOR EVP_VERSION_PATCH\n' |
	cc -E -P -I "$TOP" - | sed -n 's/^parts //p' | tr ' ' .)
[ "$numbers" = "$version" ] || echo "evp.h says $version and $numbers"
make -s -C "$TOP" CONFIG="$(basename "$BUILD")" PREFIX=/opt/evp DESTDIR="$PWD/stage" install-lib >make.log 2>&1 || cat make.log >&2
grep -qx "Version: $version" stage/opt/evp/lib/pkgconfig/evp.pc || echo "evp.pc is not of $version"
grep -q "^## $version " "$TOP/CHANGELOG.md" || echo "CHANGELOG.md has no section '## $version'"
users=$(cd "$TOP" && grep -rl 'EVP_VERSION' base cmd datasets embed engine formats kernels loader methods placement planner profiler qgen | sort | tr '\n' ' ')
[ "$users" = 'base/opt.c loader/libevp/evp.h loader/libevp/evp_error.c ' ] || echo "EVP_VERSION is used in $users"
