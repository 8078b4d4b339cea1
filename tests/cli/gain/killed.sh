# A killed evp-gain has printed nothing and leaves nothing.
mkdir tmp
mkfifo pipe
TMPDIR=$PWD/tmp evp-gain - --model synthetic:tiny --gpu L4 --dram 1M >out 2>/dev/null <pipe &
pid=$!
exec 3>pipe
for i in 1 2 3 4 5 6 7 8 9; do echo '{"prompt":"some words"}'; done >&3
until [ "$(cat /proc/$pid/comm)" = evp-gain ]; do sleep 0.01; done
sleep 0.1
kill -9 $pid
wait $pid
echo "status $?"
exec 3>&-
ls
wc -c <out
ls tmp
