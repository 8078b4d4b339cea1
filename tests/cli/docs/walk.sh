# docs/architecture.md tells the way of a context, and where each rule is, as file:function: every one of them exists
cd "$TOP" || exit
for name in $(grep -oE '`[a-z0-9_-]+\.[ch]:[a-z0-9_]+`' docs/architecture.md | tr -d '\140' | sort -u); do
	file=${name%:*} function=${name#*:}
	path=$(find base kernels methods engine embed loader datasets qgen planner profiler report aiming cmd -name "$file")
	[ -n "$path" ] && grep -qE "^[a-z].*\\b$function\\(" "$path" || echo "$name is not there"
done
