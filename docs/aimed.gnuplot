# aimed.gnuplot - draws docs/aimed.svg from docs/aimed.tsv:  cd docs && gnuplot aimed.gnuplot
# tests/golden/aim/replay.py STEP recorded.npz docs/aimed.tsv makes the numbers.
set terminal svg size 900,380 font "sans,13" background "white"
set output "aimed.svg"
set multiplot layout 1,2
set xlabel "time spent, % of all train answers"
set logscale x
set xtics (3, 6, 12, 20, 30)
set xrange [2.5:35]
set key bottom right
set title "what the plan gains, full table = 1"
set yrange [0.92:1.005]
plot "aimed.tsv" using ($1*100):2 with linespoints lw 2 pt 7 title "over recomputing everything", \
     "" using ($1*100):3 with linespoints lw 2 pt 5 title "over not compressing"
set title "loss against knowing every quality, share of the gain"
set yrange [0:0.06]
set key top right
plot "aimed.tsv" using ($1*100):4 with linespoints lw 2 pt 7 title "as evp-plan estimates it", \
     "" using ($1*100):5 with linespoints lw 2 pt 5 title "true"
