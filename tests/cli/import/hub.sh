# A model named ORG/NAME is found in the cache of huggingface_hub, wherever its variables put that; a file of that name comes
# first; what is not there is said, with the folder that was looked into.
echo 'Some words of text.' >a.txt
hub=$PWD/hub
snapshot=$hub/models--Tiny--tiny-1.0/snapshots/0123abcd
mkdir -p "$snapshot" "$hub/models--Tiny--tiny-1.0/refs"
for f in "$DATA"/tiny/*; do ln -s "$f" "$snapshot/"; done
printf 0123abcd >"$hub/models--Tiny--tiny-1.0/refs/main"
unset HF_HUB_CACHE HF_HOME XDG_CACHE_HOME
export HOME=$PWD/home
count() { evp-import -q a.txt --model Tiny/tiny-1.0 2>&1 | sed -n "s/.*\(\"n_tokens\":[0-9]*\).*/\1/p; s|$PWD|.|gp"; }
count
HF_HUB_CACHE=$hub count
mkdir -p hf home/.cache/huggingface xdg/huggingface
ln -s "$hub" hf/hub
ln -s "$hub" home/.cache/huggingface/hub
ln -s "$hub" xdg/huggingface/hub
HF_HOME=$PWD/hf count
count
HOME=/nowhere XDG_CACHE_HOME=$PWD/xdg count
HF_HUB_CACHE=$PWD/hf HF_HOME=$PWD/hf count # the first counts
export HF_HUB_CACHE=$hub
printf '../../../../etc' >"$hub/models--Tiny--tiny-1.0/refs/main"
count
printf 4567 >"$hub/models--Tiny--tiny-1.0/refs/main"
count
rm "$hub/models--Tiny--tiny-1.0/refs/main"
count
for name in Tiny/other ./Tiny/x a/b/c ../Tiny .Tiny/x Tiny/.x Ti--ny/x; do
	evp-import -q a.txt --model $name 2>&1 >/dev/null | sed "s|$PWD|.|g"
done
mkdir Tiny
ln -s "$DATA/tiny" Tiny/tiny-1.0
count
