# What request logs are refused for, and what is left out of them.
try() { evp-import -q --requests "$@" 2>&1; echo "status $?"; }
line='{"messages":[{"role":"user","content":"%s%s"}]}\n'
long=$(printf 'word %.0s' $(seq 400))
printf "$line" "$long" one "$long" two "$long" three >good
try good
try good -o - 
try good --limit 3 -o out
try good --half-life 5 -o out
try nowhere -o out
try . -o out
: >empty
try empty -o out
echo '{"status":200}' >none
try none -o out
printf "$line" short a short b >small
try small -o out
ls
{ cat good; echo '{"messages":[{"role":"us'; echo '{secret}'; } >damaged
try damaged -o out
try damaged -o out --partial
ls out
printf "$line" "$long" one "$long" two "$long" three | gzip | head -c 100 >cut
try cut -o cut-out
printf "Received request 1: prompt: '%s never ends\n" "$long" >open
evp-import --requests good open -o out 2>&1 | grep short
