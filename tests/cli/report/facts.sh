# Examples of changed answers: the facts that a variant's answer keeps, loses and adds are marked, in text that may look
# like markup; the table of configs has the shares. Of several changed answers the nearest to their mean is shown.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 2 3
/usr/bin/python3 - <<'END'
import h5py, numpy as np
with h5py.File("table.h5", "r+") as f:
    C, V, Q = 2, 3, 8
    answers = [["Ada Lovelace wrote <b>12</b> notes on 3 May 1843.", "Ada Lovelace wrote <b>13</b> notes & none in 1843.",
                "It was written by <script>Grace Hopper</script>, not by 12 others."]] * Q
    f["answers/text"][:] = answers
    f["answers/similarity"][:, 1], f["answers/similarity"][:, 2] = 0.9, 0.5
    kept = np.tile(np.array([1, 1 / 3, 1 / 3], "f4"), (Q, 1))
    f["answers/facts_kept"], f["answers/token_f1"] = kept, np.tile(np.array([1, 0.7, 0.2], "f4"), (Q, 1))
    for split in ("train", "test"):
        f["facts/" + split] = np.tile([1, 1 / 3, 0.125], (C, 1))
        f["token_f1/" + split] = np.tile([1, 0.7, 0.2], (C, 1))
END
evp-report -q table.h5 -o page.html
PYTHONPATH=$TOP/tests/cli/report python3 -B - <<'END'
from page import page, text
p = page("page.html")
columns, rows = p.table("Configs")
print(columns)
for row in rows:
    print(row)
for article in p.root.iter("article"):
    print(text(article.find("h3")))
    for paragraph in article.findall("./div/div/p"):
        print(" ", [(e.tag, text(e)) for e in paragraph], text(paragraph))
END
/usr/bin/python3 - <<'END'
import h5py
with h5py.File("table.h5", "r+") as f:
    for q, (how, similarity) in enumerate([("wholly", 0.2), ("half", 0.5), ("somewhat", 0.6), ("hardly", 0.8)]):
        f["answers/text"][q, 1], f["answers/similarity"][q, 1] = how + " changed", similarity
    f["answers/text"][4:, 1], f["answers/similarity"][4:, 1] = f["answers/text"][4, 0], 1
END
evp-report -q table.h5 | grep -oE '(wholly|half|somewhat|hardly) changed'
