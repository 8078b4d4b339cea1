# The dashboard is what its script makes of its list, every metric is in it, and it and the alerts name none that does not exist.
python3 "$TOP/contrib/monitoring/make-dashboard.py" | cmp - "$TOP/contrib/monitoring/dashboard.json"
grep -rhoE '"evp_[a-z_]+"|evp_night_figure' "$TOP/loader/libevicpress/evp_metrics.c" "$TOP/nightly/night_journal.c" | tr -d '"' |
	sort -u >all
grep -oE 'evp_[a-z_]+' "$TOP/contrib/monitoring/dashboard.json" | sort -u >shown
grep -oE 'evp_[a-z_]+' "$TOP/contrib/monitoring/alerts.yml" | sort -u >watched
wc -l <shown
comm -23 all shown | sed 's/^/not shown: /'
sort -u shown watched | comm -13 all - | sed 's/^/does not exist: /'
