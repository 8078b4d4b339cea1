# evp runs the tools by their short names, hands on arguments and statuses, and lists what there is.
evp import --version | sed 's/ [^ ]*$//'
evp plan --no-such-option 2>/dev/null
echo $?
echo '{"id":"a","text":"A text."}' | evp import -q | sed -n '$p'
evp help | head -n 1
evp help >listed
for tool in "$BUILD"/evp-*; do
	[ -x "$tool" ] && [ -f "$tool" ] || continue
	name=${tool##*/evp-}
	grep -q "^  $name  *[a-z]" listed || echo "'evp help' does not say what $name does"
done
evp help | cmp - listed
evp --help | cmp - listed
evp help plan >said && evp-plan --help | cmp - said
evp help demo >said && evp-demo --help | cmp - said
for word in no-such-tool ../plan --version; do evp help $word; echo $?; done
evp --version | cut -d' ' -f2
evp 2>said
echo $?
cmp said listed
evp no-such-tool
echo $?
evp ../../bin/true
echo $?
evp --no-such-option
echo $?
mkdir elsewhere && cd elsewhere && evp import --version | cut -d' ' -f1
