"""HTML pages as documents."""

from pathlib import Path

import pytest

from generator.corpora.formats import decode_html, read_html
from generator.corpora.pages import parse_html, read_page
from tests.support.corpora import SPANS, SPREAD, broken, good, read


def test_html_gives_what_a_reader_of_the_page_reads(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        """<html><head><title>Ferry
        fares</title><style>p {color: red}</style></head><body>
        <header><div role="banner">Logo</div><nav><a href="/">Home</a></nav></header>
        <main><h1>Fares &amp; times</h1><!-- secret -->
        <p>A <b>single</b> costs
           7.20 <sup>[<a href="#note-1">1</a>]</sup> <sup><a href="#note-2">2</a></sup><a
           href="b.html#3"><sup>3</sup></a> <a class="footnote-reference brackets" href="#4">4</a>,
           10<sup>-2</sup> of it on the 3<sup>rd</sup>.</p>Loose text.
        <table><tr><th>Who</th><th>Fare</th></tr><tr><td><p>Adult</p></td>
        <td>7.20</td></tr><tr><td>Child</td><td>3.60<i hidden>secret</i></td></tr></table>
        <ul><li>One</li><li><p>Two<br>lines</p></li></ul><ol start="3"><li></li><li>Four</li></ol>
        <dl><dt>Pier</dt><dd><p>Where boats land.</p><p>Of wood.</p></dd><dt>Quay</dt><dt>Dock</dt><dd>The same.</dd>
        <dt>Why?</dt><dd>None.</dd><dt>Boats</dt><dd><ul><li>Red</li></ul></dd></dl></main>
        <script>var x = "hidden";</script><aside>Advert</aside><footer>Imprint</footer>
        <p>We use cookies.</p></body></html>"""
    )
    (tmp_path / "plain.html").write_text(
        "<main><h1>Only a heading</h1><p>Text. <a href='b#sea'>More...</a></p></main>"
        "<main><pre>A poem\n of two lines</pre>"
        "<div class='highlight-default'><div class='highlight'><pre>a = 1\nb</pre></div></div>"
        "<div class='toc'><ul><li><a href='#sea'>Sea</a></li></ul></div>"
        "<h2>Sea<a href='#sea' title='Permanent link'> ¶</a><span class='mw-editsection'>[edit]</span></h2>"
        "<div class='book-navigation'>‹ Boats up Fares ›</div><a class='mw-jump-link' href='#sea'>Jump to the sea</a>"
        "<div class='highlight-sh notranslate'><div class='highlight'><pre>sail</pre></div></div>"
        "<p class='title'><b>Rowing</b></p>"
        "<pre class='screen'>row\nsail</pre><pre class='smallexample'>moor</pre>"
        "<div class='fragment'><div class='line'>if (wet)</div>\n<div class='line'>  row();</div><i>tip</i></div>"
        "<div id='footer'>Last updated in May</div>"
        "<table><tr><td><dl><dt>Pier</dt><dd>Of wood</dd></dl></td><td>3</td></tr></table>"
        "<dl><dt>sail()<span class='viewcode-link'>[source]</span></dt><dd>Go.</dd></dl></main>"
    )
    page, plain = good(read("folder", path=str(tmp_path)))
    assert page.title == "Ferry fares"
    table = ["Who | Fare", "Adult | 7.20", "Child | 3.60"]
    lists = ["- One", "- Two", "lines", "4. Four"]
    terms = ["Pier: Where boats land.", "Of wood.", "Quay, Dock: The same.", "Why?", "None.", "Boats", "- Red"]
    paragraphs = ["# Fares & times", "A single costs 7.20, 10⁻² of it on the 3rd.", "Loose text."]
    assert page.text.split("\n\n") == [*paragraphs, *table, *lists, *terms]
    assert plain.title == "Only a heading"
    programs = ["```text\na = 1\nb\n```", "## Sea", "```sh\nsail\n```", "###### Rowing", "```text\nrow\nsail\n```"]
    rest = ["```text\nmoor\n```", "```text\nif (wet)\n  row();\n```", "Pier Of wood | 3", "sail(): Go."]
    assert plain.text.split("\n\n") == ["Text.", "A poem\n of two lines", *programs, *rest]


def test_a_cell_that_spans_rows_or_columns_stands_in_each_unless_the_table_is_a_layout() -> None:
    text = "The ferry leaves at nine. " * 20
    layout = f"<table><tr><td>Menu</td><td colspan=2>{text}</td></tr></table>"
    assert read_html(SPANS)[1].split("\n\n") == SPREAD
    assert read_html(layout)[1] == f"Menu | {text}".strip()


def _links(*texts: str) -> str:
    return "<ul>" + "".join(f"<li><a href='/x'>{text}</a></li>" for text in texts) + "</ul>"


def test_menus_and_what_stands_beside_the_text_of_a_site_are_no_text() -> None:
    menu = _links("Fares", "Boats", "Jobs")
    _, site = read_html(
        f"""<title>Fares</title><div class="top"><p>Harbour</p>{menu}</div>
        <div class="cookie-notice"><p>We use cookies to count our visitors.</p></div>
        <div class="content has-comments"><h1>Fares</h1><p>A single costs <a href="/chf">francs</a> 7.20, dogs half.</p>
        <ul><li><a href="/dog">Dogs</a> travel for half the fare on all boats.</li><li><a href="/bike">Bikes</a> pay
        two francs a day.</li><li><a href="/pram">Prams</a> are free.</li></ul><p><a href="/map">The map</a></p>
        <p><a href="tel:+41310">031 0</a> <a href="mailto:a@b.ch">a@b.ch</a> <a href="tel:+41311">031 1</a></p>
        <form><select><option>Bern</option></select><button>Go</button></form></div>
        <div class="newsletter-box">Write to us.</div><div class="related-posts"><p>Trains are late.</p></div>
        <ol class="commentlist"><li>Too dear!</li></ol>"""
    )
    items = ["- Dogs travel for half the fare on all boats.", "- Bikes pay two francs a day.", "- Prams are free."]
    start = "A single costs francs 7.20, dogs half."
    assert site.split("\n\n") == [start, *items, "The map", "031 0 a@b.ch 031 1"]
    thread = "<h1>Dogs?</h1><div class='comment'>They travel for half of the fare.</div>"
    assert read_html(thread) == ("Dogs?", "They travel for half of the fare.")


def test_an_export_of_confluence_is_its_page() -> None:
    page = """
        <html><head><title>OPS : Boat duty</title></head><body><div id="main-header"><div id="breadcrumb-section">
        <ol id="breadcrumbs"><li><span><a href="index.html">OPS</a></span></li></ol></div>
        <h1 id="title-heading"><span id="title-text">OPS : Boat duty</span></h1></div><div id="content">
        <div class="page-metadata">Created by <span>Ann</span>, last modified on Mar 3</div>
        <div class="toc-macro"><ul><li><a href="#ropes">Ropes</a></li></ul></div>
        <div class="expand-control"><span class="expand-control-text">Click here to expand...</span></div>
        <p>Check the ropes.</p><div class="code panel pdl"><div class="codeContent panelContent pdl">
        <pre class="syntaxhighlighter-pre">make ropes</pre></div></div><div class="pageSection group">
        <div class="pageSectionHeader"><h2 class="pageSectionTitle">Attachments:</h2></div>
        <div class="greybox"><a href="a/1.png">rope.png</a> (image/png)</div></div></div></body></html>"""
    assert read_html(page) == ("OPS : Boat duty", "Check the ropes.\n\n```text\nmake ropes\n```")


def test_links_to_descriptions_of_pictures_are_no_text() -> None:
    page = """<h1>Mines</h1><p>Press f.</p><div class="mediaobject"><img src="f.png" />
        <div class="longdesc-link" align="right"><br clear="all" /><span class="longdesc-link">[<a href="ld.html"
        target="longdesc">D</a>]</span></div></div><p>It sets a flag.</p>"""
    assert read_html(page) == ("Mines", "Press f.\n\nIt sets a flag.")


def test_a_saved_page_of_wikipedia_is_its_article() -> None:
    page = """
        <title>Trams - Wikipedia</title><div class="shortdescription" style="display:none">Tram network</div>
        <h1>Trams</h1><p>They run.<sup class="noprint Inline-Template">[<i>citation needed</i>]</sup></p>
        <ol class="references"><li><span class="mw-cite-backlink"><a href="#r">^</a></span> A timetable.</li></ol>
        <div class="catlinks"><a href="/c">Categories</a>: <ul><li><a href="/t">Rail</a></li></ul></div>"""
    assert read_html(page) == ("Trams", "They run.\n\n1. A timetable.")


def test_links_that_are_the_text_of_a_page_stay() -> None:
    menu = _links("All of the fares", "All of the boats", "Jobs at the pier")
    prose = "Boats leave from the pier every ten minutes in summer. " * 4
    for page, text in (
        (f"<div><h1>Pier</h1><p>Open daily.</p><p>{menu}</p></div>", "Open daily."),
        (f"<h1>Pier</h1><div><p>Open daily.</p><nav>{menu}</nav></div>", "Open daily."),
        (f"<h1>Pier</h1><div><p>{prose}</p>{_links(*['The boats of the lake'] * 20)}</div>", prose.strip()),
    ):
        assert read_html(page) == ("Pier", text)
    page = "<h1>Pier</h1>" + _links(*[f"{prose[:100]}{number}." for number in range(3)])
    assert read_html(page)[1].count("- Boats leave") == 3


def test_paragraphs_of_links_beside_each_other_are_a_menu() -> None:
    shown = "<div class='embedded'><p><a name='x'></a><a href='/x'>{}</a></p></div>\n<br>"
    related = "".join(map(shown.format, ("All of the fares", "All of the boats", "Jobs at the pier")))
    teaser = shown.format("Boats leave from the pier every ten minutes in summer, and in winter by the hour alone.")
    two, text = related.partition("<br>")[0] * 2, "<p>Open daily.</p>"
    for page, paragraphs in ((text + related, 1), (two + text + two, 5), (text + 3 * teaser, 4)):
        assert len(read_html(f"<body><h1>Pier</h1>{page}</body>")[1].split("\n\n")) == paragraphs


@pytest.mark.parametrize(
    ("title", "heading", "found"),
    [
        ("Fares | City of Bern", "Fares", "Fares"),
        ("Fares &mdash; Manual 1.0", "Fares", "Fares"),
        ("Fares-free days", "Fares", "Fares-free days"),
        ("Fares | Bern", "Welcome", "Fares | Bern"),
        ("Fares | Bern", "Bern", "Fares | Bern"),
        ("Bern fares | Bern", "Bern<br>fares", "Bern fares"),
    ],
)
def test_the_title_of_a_page_is_without_its_site(title: str, heading: str, found: str) -> None:
    shown = heading.replace("<br>", " ")
    text = "Text." if found == shown else f"# {shown}\n\nText."
    assert read_html(f"<title>{title}</title><h1>{heading}</h1><p>Text.") == (found, text)


@pytest.mark.parametrize(
    ("named", "encoding", "text"),
    [
        ("iso-8859-1", "cp1252", "Don’t pay “7 €”"),
        ("us-ascii", "cp1252", "Don’t pay"),
        ("iso-8859-1", "utf-8", "Das Café in Köln"),
        ("gb2312", "gb18030", "票價九元，镕基"),
        ("shift_jis", "cp932", "①髙島屋"),
        ("x-sjis", "cp932", "料金は五百円"),
        ("windows-31j", "cp932", "①髙島屋"),
        ("windows-874", "cp874", "สวัสดี"),
        ("iso-8859-8-i", "iso-8859-8", "שלום"),
        ("utf8mb4", "utf-8", "Köln"),
        ("utf-16", "utf-8", "Köln"),
    ],
)
def test_html_in_another_encoding_than_it_says_loses_no_letter(named: str, encoding: str, text: str) -> None:
    assert decode_html(f'<meta charset="{named}"><p>{text}</p>'.encode(encoding)).endswith(f"<p>{text}</p>")


_NOTE = "<div class=note><table><tr><td rowspan=2><img><th>Note<tr><td><p>No dogs.</p></table></div>"
_HEAD = "<tr><th>Package<th>Used<th>For</tr>"
_CELLS = [f"mozc{n} | V:{n} | Kana" for n in "12"]
_ROWS = "".join(f"<tr><td><a href='/p'>mozc{n}</a><td><a href='/u'>V:{n}</a><td><a href='/l'>Kana</a>" for n in "12")


@pytest.mark.parametrize(
    ("page", "blocks"),
    [
        ("<table><tr><th><th>Mon<th>Tue<tr><td>Bus<td>3<td>5</table>", ["| Mon | Tue", "Bus | 3 | 5"]),
        ("<table><tr><td><img><td>Bus<td>3<tr><td><img><td>Tram<td>5</table>", ["Bus | 3", "Tram | 5"]),
        (f"<dl><dt>Boats<dd>{_NOTE}</dl>", ["Boats: Note: No dogs."]),
        ("<dl><dt>Since:<dd>1.8<dt>Why?<dd>None.</dl>", ["Since: 1.8", "Why?", "None."]),
        ("<div class='admonition tip'><p class='admonition-title'>Tip</p><p>Go.</p></div>", ["Tip: Go."]),
        ("<ul><li><p>a<div><ol><li>b<ul><li>c</ul></ol></div></ul>", ["- a", "  1. b", "    - c"]),
        ("<header><p>Harbour 7.4</p></header><article><header><p>By Ann</p></header>Go.</article>", ["By Ann", "Go."]),
        (f"<div><p>Tools<table>{_HEAD}{_ROWS}</table></div>", ["Tools", "Package | Used | For", *_CELLS]),
        (f"<p>Tools</p><table><tr><th colspan=3>See also</tr>{_ROWS}</table>", ["Tools"]),
        ("<p>Press <span><b hidden>Cmd</b> <b hidden=true>Ctrl</b></span>+F.", ["Press Ctrl+F."]),
        ("<p>Press F<span><b hidden>1</b></span><span>2<b hidden>3</b><b hidden>4</b></span>.", ["Press F2."]),
        ("<p>切り、\n その<b>上に</b>\n貼る。\nGIMP\nの Linux 版。", ["切り、その上に貼る。 GIMP の Linux 版。"]),
        (
            "<table><tr><td>A<td>B<tr><td><pre>1\n2</pre><td><pre class='code'>row\nsail</pre>"
            "<td><pre class='code'>1</pre><tr><td><pre class='code'>x</pre><td>y</table>",
            ["A | B", "```text\nrow\nsail\n```", "1", "x | y"],
        ),
        ("<table><tr><td>あ\n<td>い\n</table><p>う\n<p>え<pre>お\nか</pre>", ["あ | い", "う", "え", "お\nか"]),
        ("<p>한국어\n문장", ["한국어 문장"]),
        # without the end tags that may be left out
        ("<ul><li>One<li>Two</ul><p>End", ["- One", "- Two", "End"]),
        ("<ol><li>One<ul><li>a<li>b</ul><li>Two</ol>", ["1. One", "  - a", "  - b", "2. Two"]),
        ("<table><tr><th>Who<th>Fare<tr><td>Adult<td>3 €</table>", ["Who | Fare", "Adult | 3 €"]),
        ("<table><thead><tr><th>Who<th>Fare<tbody><tr><td>Adult<td>3 €</table>", ["Who | Fare", "Adult | 3 €"]),
        ("<table><tr><td>Bus<td><table><tr><td>a<td>b</table><tr><td>Tram</table>", ["Bus", "a | b", "Tram"]),
    ],
)
def test_a_page_gives_what_a_browser_shows(page: str, blocks: list[str]) -> None:
    assert read_page(parse_html(page)).split("\n\n") == blocks


def test_paragraphs_without_end_tags_are_not_nested() -> None:
    """Of 12,000, which took 7 s, each would be inside the one before."""
    page = parse_html("<p>One <b>1</b><p>Two<div><p>Three</div><blockquote><p>Four<p>Five</blockquote>")
    assert [p.get_text() for p in page.select("p p")] == ["Three", "Four", "Five"]
    assert read_page(page).split("\n\n") == ["One 1", "Two", "Three", "Four", "Five"]


def test_html_is_decoded_as_it_says_it_is_encoded(tmp_path: Path) -> None:
    page = '<meta charset="{}"><p>Köln</p>'
    (tmp_path / "a.html").write_bytes(page.format("iso-8859-1").encode("latin-1"))
    (tmp_path / "b.html").write_bytes("<p>Köln</p>".encode())
    (tmp_path / "c.html").write_bytes("<p>Köln</p>".encode("latin-1"))
    (tmp_path / "d.html").write_bytes(page.format("klingon").encode("latin-1"))
    (tmp_path / "e.html").write_bytes(page.format("zip").encode())
    *fine, c, d, e = read("folder", path=str(tmp_path))
    assert [document.text for document in good(fine)] == ["Köln", "Köln"]
    assert len(broken([e])) == 1, "Python has it, and it's none of text"
    assert broken([c, d]) == [
        (f"{tmp_path}/c.html", "line 1 isn't utf-8 (byte 0xf6); save it as UTF-8"),
        (f"{tmp_path}/d.html", "unknown encoding klingon; save it as UTF-8"),
    ]
