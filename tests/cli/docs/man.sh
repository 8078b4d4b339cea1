# docs/man/ has a page for every tool, as `make man` would write it now, and no other page.
status=0
say() {
	echo "$1" >&2
	status=1
}
version=$(sed -n 's/^#define EVICPRESS_VERSION  *"\(.*\)"/\1/p' "$TOP/loader/libevicpress/evicpress.h")
for tool in "$BUILD"/evp "$BUILD"/evp-*; do
	[ -x "$tool" ] && [ -f "$tool" ] || continue
	name=${tool##*/}
	"$TOP/scripts/manpage" markdown "$tool" "$version" >"$name.md" || exit
	cmp -s "$name.md" "$TOP/docs/man/$name.md" || say "docs/man/$name.md is out of date; run make man"
	"$TOP/scripts/manpage" roff "$tool" "$version" >"$name.1"
	case $(sed -n 1p "$name.1") in
	.TH*" \"\" \"EvicPress $version\" "*) ;;
	*) say "$name.1 has another release or a date: $(sed -n 1p "$name.1")" ;;
	esac
done
for page in "$TOP"/docs/man/*.md; do
	[ -f "${page##*/}" ] || say "docs/man/${page##*/} is the page of no tool"
done
exit $status
