/* style.c - the style sheet of the page: one column up to 60 em, then two; light and dark; paper. */
#include "report/report_internal.h"

const char *const report_style[] = {
    /* the page */
    ":root{color-scheme:light dark;--ink:#1c2127;--dim:#5d6772;--rule:#dfe3e8;--soft:#f4f6f8;--paper:#fff;--accent:#0b62c4;"
    "--good:#d7f0dc;--bad:#fbdcd4}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa5b1;--rule:#2b323a;--soft:#1c2229;--paper:#14181d;"
    "--accent:#6cb0ff;--good:#1d4a2a;--bad:#5c2a1e}}\n"
    "*{box-sizing:border-box}\n"
    "body{font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif;color:var(--ink);background:var("
    "--paper);max-width:76rem;margin:0 auto;padding:2rem 1.25rem 4rem;-webkit-text-size-adjust:100%}\n"
    "a{color:var(--accent)}p{margin:.5rem 0;max-width:46rem}\n"
    ".eyebrow{color:var(--dim);font-size:.875rem;letter-spacing:.04em;margin:0}\n"
    "h1{font-size:clamp(1.7rem,4.5vw,2.75rem);line-height:1.12;letter-spacing:-.02em;margin:.3rem 0 .6rem;text-wrap:"
    "balance}\n"
    ".lede{font-size:1.15rem;line-height:1.45}.meta,.note{color:var(--dim);font-size:.875rem}.meta{margin:.15rem 0}\n"
    "nav{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;margin:1.2rem 0 0;padding:.6rem 0;border-block:1px solid "
    "var(--rule);font-size:.9rem}nav a{text-decoration:none}nav a:hover{text-decoration:underline}\n"
    "h2{font-size:1.4rem;line-height:1.2;letter-spacing:-.01em;margin:2.8rem 0 .8rem;scroll-margin-top:1rem}\n"
    "h3{font-size:1rem;margin:1.6rem 0 .3rem}h4{font-size:.75rem;font-weight:600;color:var(--dim);margin:0}\n"
    ".columns,.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1.5rem "
    "2.5rem;align-items:start}\n"
    ".columns>*,.figures>*{min-width:0}figure{margin:0;max-width:38rem}figcaption{font-weight:600;padding:0 0 "
    ".4rem}.columns h3{margin-top:0}.columns tbody th{min-width:0;overflow-wrap:normal}.columns *+h3{margin-top:1.2rem}\n"
    ".key{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1rem;margin:.2rem 0 0;padding:0;font-size:.8125rem;color:"
    "var(--dim)}.key li{display:flex;align-items:center;gap:.4rem}.key svg{width:24px;height:14px;flex:none}\n"
    ".wide{overflow-x:auto;margin:.5rem 0}.wide:focus-visible{outline:2px solid var(--accent)}\n",
    /* tables */
    "table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.35rem .6rem;text-align:left;vertical-align:baseline;border-bottom:1px solid var(--rule);white-space:"
    "nowrap}th:first-child,td:first-child{padding-left:.5rem}\n"
    "thead th{font-weight:500;font-size:.8125rem;color:var(--dim);vertical-align:bottom;white-space:normal;line-height:1.25;"
    "border-bottom:1px solid var(--dim)}\n"
    "tbody th{font-weight:400;white-space:normal;overflow-wrap:anywhere;min-width:12em}td,.n{text-align:right}.t,.fill{text-align:left}thead .n{min-width:4.5em}\n"
    ".chosen{background:var(--soft)}.chosen th{font-weight:650;box-shadow:inset 3px 0 var(--accent)}\n"
    ".pm{display:inline-block;min-width:4.3em;font-size:.93em;color:var(--dim);text-align:left;white-space:pre}\n"
    ".fill{min-width:9em}.bar{display:inline-block;width:4.5em;height:.6em;border-radius:.3em;background:var(--rule);"
    "overflow:hidden}.bar>span{display:block;height:100%;background:var(--accent)}\n",
    /* answers and commands */
    ".examples{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr));gap:1rem;margin:.8rem 0}\n"
    "article{border:1px solid var(--rule);border-radius:.5rem;padding:.8rem 1rem;min-width:0;overflow-wrap:anywhere;"
    "font-size:.9rem}article h3{margin:0 0 .2rem;display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1rem}\n"
    ".score{font-weight:400;font-size:.875rem;color:var(--dim)}.question{color:var(--dim);margin:.2rem 0 .6rem}\n"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,12rem),1fr));gap:.6rem 1.2rem}.pair p{margin:"
    ".1rem 0}\n"
    "mark,del,ins{color:inherit;border-radius:.2em;padding:0 .15em;background:var(--good);text-decoration:none}"
    "del,ins{background:var(--bad)}del{text-decoration:line-through}ins{text-decoration:underline}\n"
    "details{border-bottom:1px solid var(--rule);padding:.4rem 0}summary{cursor:pointer}summary .score{margin-left:.8rem}\n"
    "pre{background:var(--soft);border-radius:.5rem;padding:.9rem 1rem;overflow-x:auto;font-size:.8125rem;line-height:1.5;"
    "white-space:pre-wrap;overflow-wrap:anywhere}\n"
    "@media(max-width:30em){th,td{padding:.35rem .4rem}tbody th{min-width:7em}thead .n{min-width:3.5em}}\n",
    /* paper */
    "@media print{body{max-width:none;padding:0;font-size:10pt}nav{display:none}h2{margin-top:1.6rem;break-after:avoid}\n"
    "figure,article,tr{break-inside:avoid}.bar,.bar>span,.chosen,mark,del,ins{print-color-adjust:exact;-webkit-print-color-adjust:"
    "exact}.columns,.figures,.examples{grid-template-columns:1fr 1fr;gap:1rem}.columns{grid-template-columns:1fr}.columns figure{max-width:12.5cm}\n"
    "th,td{padding:.2rem .35rem}table{font-size:8.5pt}details:not([open]){display:none}.wide{overflow:visible}}\n",
    NULL,
};
