# paper.gnuplot - draws paper.svg from paper/*.tsv:  cd docs && gnuplot paper.gnuplot
set terminal svg size 1400,560 font "sans,12" background "white" noenhanced
set output "paper.svg"
set datafile separator tab
set multiplot layout 1,3
set xlabel "mean time to first token, s"
set ylabel "quality"
set logscale x
set grid
set key outside bottom center horizontal maxrows 4
set title "Zipf's law, exponent .9, .5 requests/s"
plot "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "prefill" ? $5 : NaN):6 with points pt 4 lc rgb "#999999" title "prefill", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "lru" ? $5 : NaN):6 with points pt 5 lc rgb "#000000" title "lru", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "lru+keydiff" ? $5 : NaN):6 with points pt 6 lc rgb "#ee6677" title "lru+keydiff", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "lru+snapkv" ? $5 : NaN):6 with points pt 7 lc rgb "#228833" title "lru+snapkv", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "lru+impress" ? $5 : NaN):6 with points pt 8 lc rgb "#66ccee" title "lru+impress", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "lru+kvzip" ? $5 : NaN):6 with points pt 9 lc rgb "#aa3377" title "lru+kvzip", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "lru+kivi" ? $5 : NaN):6 with points pt 10 lc rgb "#4477aa" title "lru+kivi", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "live" ? $5 : NaN):6 with points pt 11 lc rgb "#ee7733" title "live", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "adaptcache" ? $5 : NaN):6 with points pt 12 lc rgb "#ccbb44" title "adaptcache", \
     "paper/ttft.tsv" using (strcol(1) eq "popular" && strcol(2) eq "night" ? $5 : NaN):6 with points pt 13 lc rgb "#332288" title "night"
set title "Zipf's law, every context through all ranks, .5 requests/s"
plot "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "prefill" ? $5 : NaN):6 with points pt 4 lc rgb "#999999" title "prefill", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "lru" ? $5 : NaN):6 with points pt 5 lc rgb "#000000" title "lru", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "lru+keydiff" ? $5 : NaN):6 with points pt 6 lc rgb "#ee6677" title "lru+keydiff", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "lru+snapkv" ? $5 : NaN):6 with points pt 7 lc rgb "#228833" title "lru+snapkv", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "lru+impress" ? $5 : NaN):6 with points pt 8 lc rgb "#66ccee" title "lru+impress", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "lru+kvzip" ? $5 : NaN):6 with points pt 9 lc rgb "#aa3377" title "lru+kvzip", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "lru+kivi" ? $5 : NaN):6 with points pt 10 lc rgb "#4477aa" title "lru+kivi", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "live" ? $5 : NaN):6 with points pt 11 lc rgb "#ee7733" title "live", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "adaptcache" ? $5 : NaN):6 with points pt 12 lc rgb "#ccbb44" title "adaptcache", \
     "paper/ttft.tsv" using (strcol(1) eq "moving" && strcol(2) eq "night" ? $5 : NaN):6 with points pt 13 lc rgb "#332288" title "night"
unset logscale x
set title "keydiff:drop=0.9"
set xlabel "quality lost"
set ylabel "share of contexts"
set yrange [0:1]
plot "paper/drop-SmolLM2-135M-Instruct.Q4_1.tsv" using 2:1 skip 1 with steps title "SmolLM2-135M-Instruct.Q4_1", "paper/drop-Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.tsv" using 2:1 skip 1 with steps title "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M"
