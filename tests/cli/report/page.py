"""A report as a tree: the page is well-formed XML, so a strict parser reads it. page(PATH) checks what holds for every
page and returns it."""
import re, sys
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = set("html head meta title style body header main nav section div figure figcaption article details summary table thead "
              "tbody tr th td p h1 h2 h3 h4 a ul li span i mark del ins pre code svg path text circle".split())


def text(element):
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip()


class Page:
    def __init__(self, path):
        self.bytes = open(path, "rb").read()
        self.root = ET.fromstring(self.bytes.split(b"\n", 1)[1])
        assert self.bytes.startswith(b"<!DOCTYPE html>\n")
        self.h1 = text(self.root.find(".//h1"))
        self.lede = text(self.root.find(".//p[@class='lede']"))
        self.headings = {h.get("id"): text(h) for h in self.root.iter("h2")}

    def tables(self, name):
        """The tables of a name: (columns, rows), cells as texts."""
        for frame in self.root.iter("div"):
            if frame.get("aria-label") == name:
                yield ([text(th) for th in frame.findall(".//thead//th")],
                       [[text(cell) for cell in tr] for tr in frame.findall(".//tbody/tr")])

    def table(self, name):
        return next(self.tables(name))


def page(path):
    p = Page(path)
    ids = [e.get("id") for e in p.root.iter() if e.get("id")]
    assert len(ids) == len(set(ids)), "an id twice"
    links = [a.get("href") for a in p.root.iter("a")]
    assert links == ["#" + id for id in p.headings], links
    for e in p.root.iter():
        assert e.tag.replace(SVG, "") in ALLOWED, e.tag
        assert not [a for a in e.attrib if a.startswith("on") or a in ("src", "xlink:href")], e.attrib
        assert "url(" not in e.get("style", "")
    assert b"@import" not in p.bytes and b"url(" not in p.bytes
    assert " nan" not in p.lede and " nan" not in p.h1
    for th in p.root.iter("th"):
        assert th.get("scope") in ("row", "col")
    for svg in p.root.iter(SVG + "svg"):
        assert svg.get("aria-label") or svg.get("aria-hidden"), "a picture without a name"
    assert b"nan" not in re.sub(rb"<(p|pre|h3)\b.*?</\1>", b"", p.bytes, flags=re.S).lower(), "a number that is none"
    for columns, rows in (t for d in p.root.iter("div") if d.get("role") == "region" for t in p.tables(d.get("aria-label"))):
        assert all(len(row) == len(columns) for row in rows), columns
    return p
