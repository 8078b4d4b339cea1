# nightly.gnuplot - draws docs/nightly.svg from docs/nightly.tsv:  cd docs && gnuplot nightly.gnuplot
# tests/bench/nightly build/release 4 docs/nightly.tsv makes the numbers.
set terminal svg size 900,640 font "sans,13" background "white"
set output "nightly.svg"
set multiplot layout 2,2
set xlabel "minutes"
set xrange [5:60]
set style data linespoints
gain(k) = column(8 + 2 * k) - column(9 + 2 * k) - (column(6) - column(7)) # alpha is 1
do for [world in "0 2"] {
    name = world == 0 ? "questions as recorded" : "topics change halfway"
    set title name . ": gain over night"
    set ylabel "s per request"
    set yrange [-0.01:0.03]
    set key top left
    plot 0 lc "gray" notitle, for [k = 0:2] "nightly.tsv" index (world + 0) using 3:(gain(k)) \
         lw 2 pt 7 ps 0.5 lc (k + 1) title word("drift:0.3 drift:0.2 drift:0.1", k + 1)
    set title name . ": quality"
    unset ylabel
    set yrange [0.86:0.96]
    set key bottom left
    plot "nightly.tsv" index (world + 0) using 3:6 lw 2 pt 7 ps 0.5 lc "black" title "night", \
         for [k = 0:2] "nightly.tsv" index (world + 0) using 3:(column(8 + 2 * k)) \
         lw 2 pt 7 ps 0.5 lc (k + 1) title word("drift:0.3 drift:0.2 drift:0.1", k + 1)
}
