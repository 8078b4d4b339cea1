# One release, defined in evicpress.h: --version of every tool prints it (a build of another commit adds that commit), and
# evicpress.pc, the numbers in evicpress.h and CHANGELOG.md agree. No file that a tool writes depends on it.
version=$(sed -n 's/^#define EVICPRESS_VERSION  *"\(.*\)"/\1/p' "$TOP/loader/libevicpress/evicpress.h")
[ "$version" ] || echo "evicpress.h defines no version"
for tool in "$BUILD"/evp "$BUILD"/evp-*; do
	[ -x "$tool" ] && [ -f "$tool" ] || continue
	said=$("$tool" --version)
	name=${tool##*/}
	case $said in
	"$name (EvicPress) $version" | "$name (EvicPress) $version+"?*) ;;
	*) echo "$name --version: '$said'" ;;
	esac
done
numbers=$(printf '#include "loader/libevicpress/evicpress.h"\nparts EVICPRESS_VERSION_MAJOR EVICPRESS_VERSION_MINOR EVICPRESS_VERSION_PATCH\n' |
	cc -E -P -I "$TOP" - | sed -n 's/^parts //p' | tr ' ' .)
[ "$numbers" = "$version" ] || echo "evicpress.h says $version and $numbers"
make -s -C "$TOP" CONFIG="$(basename "$BUILD")" PREFIX=/opt/evp DESTDIR="$PWD/stage" install-lib >make.log 2>&1 || cat make.log >&2
grep -qx "Version: $version" stage/opt/evp/lib/pkgconfig/evicpress.pc || echo "evicpress.pc is not of $version"
grep -q "^## $version " "$TOP/CHANGELOG.md" || echo "CHANGELOG.md has no section '## $version'"
users=$(cd "$TOP" && grep -rl 'EVICPRESS_VERSION' base cmd datasets embed engine formats kernels loader methods placement planner profiler qgen | sort | tr '\n' ' ')
[ "$users" = 'loader/libevicpress/evicpress.h loader/libevicpress/evp_encode.c loader/libevicpress/evp_error.c ' ] || echo "EVICPRESS_VERSION is used in $users"
