# methods.gnuplot - draws methods.svg from methods.tsv:  cd docs && gnuplot methods.gnuplot
set terminal svg size 1040,620 font "sans,12" background "white" noenhanced
set output "methods.svg"
set datafile separator tab
set multiplot layout 1,2
set xlabel "size / size of the uncompressed cache"
set ylabel "cosine of answers with those of the uncompressed cache"
set logscale x
set xrange [0.08:1.1]
set yrange [*:1.02]
set xtics (0.1, 0.2, 0.3, 0.5, 0.7, 1)
set grid
set bars 0.5
set key outside bottom center horizontal maxrows 5
set title "SmolLM2-135M-Instruct.Q4_1"
plot "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "arkv" ? $4 : NaN):5:6 with yerrorlines lc rgb "#4477aa" title "arkv", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "fp8" ? $4 : NaN):5:6 with yerrorlines lc rgb "#ee6677" title "fp8", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "impress" ? $4 : NaN):5:6 with yerrorlines lc rgb "#228833" title "impress", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "keydiff" ? $4 : NaN):5:6 with yerrorlines lc rgb "#aa3377" title "keydiff", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "kivi" ? $4 : NaN):5:6 with yerrorlines lc rgb "#ccbb44" title "kivi", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "knorm" ? $4 : NaN):5:6 with yerrorlines lc rgb "#66ccee" title "knorm", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "kvzip" ? $4 : NaN):5:6 with yerrorlines lc rgb "#000000" title "kvzip", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "snapkv" ? $4 : NaN):5:6 with yerrorlines lc rgb "#ee7733" title "snapkv", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "snapkv+cam" ? $4 : NaN):5:6 with yerrorlines lc rgb "#999933" title "snapkv+cam", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "streamingllm" ? $4 : NaN):5:6 with yerrorlines lc rgb "#44bb99" title "streamingllm", \
     "methods.tsv" using (strcol(1) eq "SmolLM2-135M-Instruct.Q4_1" && strcol(2) eq "all" && strcol(11) eq "turboquant" ? $4 : NaN):5:6 with yerrorlines lc rgb "#bbbbbb" title "turboquant"
set title "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M"
plot "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "arkv" ? $4 : NaN):5:6 with yerrorlines lc rgb "#4477aa" title "arkv", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "fp8" ? $4 : NaN):5:6 with yerrorlines lc rgb "#ee6677" title "fp8", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "impress" ? $4 : NaN):5:6 with yerrorlines lc rgb "#228833" title "impress", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "keydiff" ? $4 : NaN):5:6 with yerrorlines lc rgb "#aa3377" title "keydiff", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "kivi" ? $4 : NaN):5:6 with yerrorlines lc rgb "#ccbb44" title "kivi", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "knorm" ? $4 : NaN):5:6 with yerrorlines lc rgb "#66ccee" title "knorm", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "kvzip" ? $4 : NaN):5:6 with yerrorlines lc rgb "#000000" title "kvzip", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "snapkv" ? $4 : NaN):5:6 with yerrorlines lc rgb "#ee7733" title "snapkv", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "snapkv+cam" ? $4 : NaN):5:6 with yerrorlines lc rgb "#999933" title "snapkv+cam", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "streamingllm" ? $4 : NaN):5:6 with yerrorlines lc rgb "#44bb99" title "streamingllm", \
     "methods.tsv" using (strcol(1) eq "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M" && strcol(2) eq "all" && strcol(11) eq "turboquant" ? $4 : NaN):5:6 with yerrorlines lc rgb "#bbbbbb" title "turboquant"
