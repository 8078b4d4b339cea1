# The units, the crontab line and logrotate's file of contrib/nightly/ are what systemd, cron and logrotate take; the
# configuration that is installed with them is one that evp-nightly takes.
cuda=$([ -f "$BUILD/evp-cuda.so" ] || echo CUDA=0)
make -s -C "$TOP" $cuda CONFIG="$(basename "$BUILD")" PREFIX="$PWD/stage" install >make.log 2>&1 || { cat make.log >&2; exit 1; }
evp-nightly --config stage/share/evp/nightly.json --dry-run 2>said
grep -q 'cannot enter the state folder' said || cat said
awk '$1 == "0" { print (NF > 8 ? "a line for /etc/cron.d" : "too short") }' stage/share/evp/evp-nightly.cron
sed -i "s@su evp evp@su root root@" stage/share/evp/evp-nightly.logrotate
command -v logrotate >/dev/null && { logrotate -d -s "$PWD/status" stage/share/evp/evp-nightly.logrotate 2>&1 | grep -i 'error:.*\(unknown\|bad\|line\)'; }
command -v systemd-analyze >/dev/null || skip "systemd is not installed"
sed -i 's@^User=.*@User=root@' stage/lib/systemd/system/*.service
systemd-analyze verify --man=no "stage/lib/systemd/system/evp-nightly@nightly.timer" "stage/lib/systemd/system/evp-nightly@nightly.service" 2>&1
sed -i s/OnCalendar/OnCalender/ stage/lib/systemd/system/*.timer
systemd-analyze verify --man=no "stage/lib/systemd/system/evp-nightly@nightly.timer" 2>&1 | grep -o 'Unknown key' # so it would be seen
