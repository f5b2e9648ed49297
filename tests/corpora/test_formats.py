"""Files as documents: text, Markdown, HTML and PDF, and the documents of this package."""

import os
import zipfile
from pathlib import Path

import pypdf
import pytest

from generator.corpora.folder import FolderCorpus
from generator.schema import Document
from tests.support.corpora import broken, corpus, good, message, read


def test_the_sample_has_documents_of_all_lengths_in_groups() -> None:
    sample = good(read("sample"))
    lengths = [len(document.text.split()) for document in sample]
    assert len(sample) == 15 and min(lengths) >= 300 and 1200 <= max(lengths) <= 1500
    assert all(document.title and not document.text.lstrip().startswith("# ") for document in sample)


def test_files_that_are_read_in_another_way_are_another_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("Text.")
    settings = corpus("folder", path=str(tmp_path))
    before = settings.fingerprint()
    monkeypatch.setattr(FolderCorpus, "reading", "another")
    assert settings.fingerprint() != before, "else a cache with the old text would be taken"


def test_a_folder_is_read_in_the_order_of_its_paths_whatever_the_kind_of_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "z.TXT").write_bytes(b"\xef\xbb\xbfFirst line.\r\nSecond line.")
    (tmp_path / "b" / "deep" / "a.md").write_text("\n# A *title*\n\nText with a # sign.\n")
    (tmp_path / "a.htm").write_text("<p>Hello.")
    for ignored in ("c.docx", ".hidden.txt", ".git/x.txt", "d.docx", "README"):
        (tmp_path / ignored).write_text("ignored")
    found = good(read("folder", path=str(tmp_path)))
    corpus("folder", path=str(tmp_path)).fingerprint()  # as each run asks for, also if it reads no documents again
    told = capsys.readouterr().err
    assert told.count("skipped 3 files") == 1 and "2 .docx, 1 without a suffix" in told
    assert "corpus.reader=office reads .docx" in told
    assert [(document.id, document.title) for document in found] == [
        ("a.htm", "a"),
        ("b/deep/a.md", "A title"),
        ("z.TXT", "z"),
    ]
    assert [document.text for document in found][1:] == ["Text with a # sign.", "First line.\nSecond line."]
    assert [document.id for document in good(read("folder", path=str(tmp_path / "z.TXT")))] == ["z.TXT"]
    (tmp_path / "office").mkdir()
    (tmp_path / "office" / "a.docx").touch()
    assert "corpus.reader=office reads .docx" in message(lambda: read("folder", path=str(tmp_path / "office")))


@pytest.mark.parametrize(
    ("markdown", "title", "text"),
    [
        ("---\ntitle: 'Fees: 2024'\ntags: [a]\n---\n# Fees\nText.", "Fees: 2024", "# Fees\n\nText."),
        ("---\ntitle: Fees\n---\n# Fees\nText.", "Fees", "Text."),
        ("---\ntags: [a]\n---\n# Fees\nText.", "Fees", "Text."),
        ("---\na: b: c\n---\nText.", "x", "## a: b: c\n\nText."),
        ("---\nOnly a rule above.\n---\nText.", "x", "## Only a rule above.\n\nText."),
        ("Text.\n# Later heading\n", "x", "Text.\n\n# Later heading"),
        ("## Second level\nText.", "x", "## Second level\n\nText."),
        (
            "An adult of\nBerlin *pays* a\n[fee](f.md).![logo](l.png)\n<!-- secret -->",
            "x",
            "An adult of Berlin pays a fee.",
        ),
        ("1. One\n   Two\n\n7. Three\n   * Four\n*\n\nFive", "x", "1. One Two\n\n2. Three\n\n- Four\n\nFive"),
        ("| Who | Fare |\n| --- | --- |\n| *Adult* | 7 |", "x", "Who | Fare\n\nAdult | 7"),
        ("Run:\n```sh\nif a:\n    b\n```\n", "x", "Run:\n\n```sh\nif a:\n    b\n```"),
    ],
)
def test_markdown_gives_its_title_and_the_text_that_a_reader_of_its_page_reads(
    tmp_path: Path, markdown: str, title: str, text: str
) -> None:
    (tmp_path / "x.md").write_text(markdown)
    (document,) = good(read("folder", path=str(tmp_path)))
    assert (document.title, document.text) == (title, text)


def test_html_gives_what_a_reader_of_the_page_reads(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        """<html><head><title>Ferry
        fares</title><style>p {color: red}</style></head><body>
        <header><div role="banner">Logo</div><nav><a href="/">Home</a></nav></header>
        <main><h1>Fares &amp; times</h1><!-- secret -->
        <p>A <b>single</b> costs
           7.20 <sup>[<a href="#note-1">1</a>]</sup> <sup><a href="#note-2">2</a></sup>,
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
        "<main><h1>Only a heading</h1><p>Text.</p></main><main><pre>A poem\n of two lines</pre>"
        "<div class='highlight-default'><div class='highlight'><pre>a = 1\nb</pre></div></div>"
        "<div class='toc'><ul><li><a href='#sea'>Sea</a></li></ul></div>"
        "<h2>Sea<a class='headerlink' href='#sea'>¶</a><span class='mw-editsection'>[edit]</span></h2>"
        "<div class='book-navigation'>‹ Boats up Fares ›</div><a class='mw-jump-link' href='#sea'>Jump to the sea</a>"
        "<div class='highlight-sh notranslate'><div class='highlight'><pre>sail</pre></div></div>"
        "<table><tr><td><dl><dt>Pier</dt><dd>Of wood</dd></dl></td><td>3</td></tr></table>"
        "<dl><dt>sail()<span class='viewcode-link'>[source]</span></dt><dd>Go.</dd></dl></main>"
    )
    page, plain = good(read("folder", path=str(tmp_path)))
    assert page.title == "Ferry fares"
    table = ["Who | Fare", "Adult | 7.20", "Child | 3.60"]
    lists = ["- One", "- Two", "lines", "4. Four"]
    terms = ["Pier: Where boats land.", "Of wood.", "Quay", "Dock: The same.", "Why?", "None.", "Boats", "- Red"]
    paragraphs = ["# Fares & times", "A single costs 7.20, 10⁻² of it on the 3rd.", "Loose text."]
    assert page.text.split("\n\n") == [*paragraphs, *table, *lists, *terms]
    assert plain.title == "Only a heading"
    programs = ["```text\na = 1\nb\n```", "## Sea", "```sh\nsail\n```"]
    assert plain.text.split("\n\n") == ["Text.", "A poem\n of two lines", *programs, "Pier Of wood | 3", "sail(): Go."]


def _links(*texts: str) -> str:
    return "<ul>" + "".join(f"<li><a href='/x'>{text}</a></li>" for text in texts) + "</ul>"


def test_menus_and_what_stands_beside_the_text_of_a_site_are_no_text(tmp_path: Path) -> None:
    menu = _links("Fares", "Boats", "Jobs")
    (tmp_path / "site.html").write_text(
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
    (tmp_path / "thread.html").write_text("<h1>Dogs?</h1><div class='comment'>They travel for half of the fare.</div>")
    site, thread = good(read("folder", path=str(tmp_path)))
    items = ["- Dogs travel for half the fare on all boats.", "- Bikes pay two francs a day.", "- Prams are free."]
    start = "A single costs francs 7.20, dogs half."
    assert site.text.split("\n\n") == [start, *items, "The map", "031 0 a@b.ch 031 1"]
    assert thread.text == "They travel for half of the fare."


def test_links_that_are_the_text_of_a_page_stay(tmp_path: Path) -> None:
    menu = _links("All of the fares", "All of the boats", "Jobs at the pier")
    prose = "Boats leave from the pier every ten minutes in summer. " * 4
    (tmp_path / "1.html").write_text(f"<div><h1>Pier</h1><p>Open daily.</p><p>{menu}</p></div>")
    (tmp_path / "2.html").write_text(f"<h1>Pier</h1><div><p>Open daily.</p><nav>{menu}</nav></div>")
    (tmp_path / "3.html").write_text(f"<h1>Pier</h1><div><p>{prose}</p>{_links(*['The boats of the lake'] * 20)}</div>")
    (tmp_path / "4.html").write_text("<h1>Pier</h1>" + _links(*[f"{prose[:100]}{number}." for number in range(3)]))
    texts = [document.text for document in good(read("folder", path=str(tmp_path)))]
    assert texts[:3] == ["Open daily.", "Open daily.", prose.strip()]
    assert texts[3].count("- Boats leave") == 3


def test_restructured_text_gives_what_a_reader_of_its_page_reads(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "a.rst").write_text(
        """.. _intro:

=======
Ferries
=======

The :ref:`boat <intro>` from :func:`~port.sail` sails at
Harrowmere.

.. include:: secret.txt
.. raw:: html
   :file: secret.txt
.. toctree::
   fares

.. note:: Tickets are sold until
   Sunday.

Fares
-----

* An adult pays 7.20, a child
  Half of it.

.. image:: https://example.org/logo.svg

.. code-block:: python

   pay(
       7.20)

=====  ====
Who    Fare
=====  ====
Adult  7.20
=====  ====
"""
    )
    (tmp_path / "b.rst").write_text("Text.\n\nFares\n=====\n\nMore.\n")
    ferries, untitled = good(read("folder", path=str(tmp_path)))[:2]
    assert (ferries.title, untitled.title) == ("Ferries", "b")
    note = ["Note", "Tickets are sold until Sunday."]
    fares = [
        "## Fares",
        "- An adult pays 7.20, a child Half of it.",
        "```python\npay(\n    7.20)\n```",
        "Who | Fare",
        "Adult | 7.20",
    ]
    assert ferries.text.split("\n\n") == ["The boat from port.sail sails at Harrowmere.", *note, *fares]
    assert untitled.text == "Text.\n\n## Fares\n\nMore."


@pytest.mark.parametrize(
    ("title", "heading", "found"),
    [
        ("Fares | City of Bern", "Fares", "Fares"),
        ("Fares &mdash; Manual 1.0", "Fares", "Fares"),
        ("Fares-free days", "Fares", "Fares-free days"),
        ("Fares | Bern", "Welcome", "Fares | Bern"),
        ("Fares | Bern", "Bern", "Fares | Bern"),
    ],
)
def test_the_title_of_a_page_is_without_its_site(title: str, heading: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<title>{title}</title><h1>{heading}</h1><p>Text.")
    (page,) = good(read("folder", path=str(tmp_path)))
    assert (page.title, page.text) == (found, "Text." if found == heading else f"# {heading}\n\nText.")


def test_references_show_the_titles_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text(
        "See :ref:`fares-2`, :ref:`Port\nauthority`,\n:ref:`boats <fares>` and :ref:`none`.\n\n"
        ".. _port Authority:\n\nS3\n--\n\n.. _none:\n\nText.\n\nSea\n---\n"
    )
    (tmp_path / "b.rst").write_text(".. _fares-1:\n.. _`Fares-2`:\n\n=====\nFares\n=====\n\nAn adult pays 7.20.\n")
    (tmp_path / "c.rst").write_bytes(b"\xff")
    found = [record for record in read("folder", path=str(tmp_path)) if isinstance(record, Document)]
    assert found[0].text.partition("\n")[0] == "See Fares, S3, boats and none."


def test_directives_of_sphinx_keep_what_they_name_and_hold(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text(
        """Ferry
=====

.. py:function:: sail(port,
                      hour=9)
   :noindex:

   Leave :py:func:`port.of` a harbour.

   .. versionadded:: 1.3
      The *hour*.
   .. deprecated:: 2.0

.. Option:: --dry-run

   Say what would be done.

   :param none: nothing

.. tab-set::

   .. tab-item:: Linux

      Use the **store**.

.. only:: html

   It is shown.

.. seealso:: The timetable.
.. toctree::

   fares
.. autoclass:: ferry.Boat
   :members:
.. prompt:: bash

   sail  --now
"""
    )
    (document,) = good(read("folder", path=str(tmp_path)))
    assert document.text.split("\n\n") == [
        "sail(port, hour=9)",
        "Leave port.of a harbour.",
        "Added in version 1.3: The hour.",
        "Deprecated since version 2.0.",
        "--dry-run",
        "Say what would be done.",
        "param none: | nothing",
        "Linux",
        "Use the store.",
        "It is shown.",
        "The timetable.",
        "```text\nsail  --now\n```",
    ]


def test_html_is_decoded_as_it_says_it_is_encoded(tmp_path: Path) -> None:
    page = '<meta charset="{}"><p>Köln</p>'
    (tmp_path / "a.html").write_bytes(page.format("iso-8859-1").encode("latin-1"))
    (tmp_path / "b.html").write_bytes("<p>Köln</p>".encode())
    (tmp_path / "c.html").write_bytes("<p>Köln</p>".encode("latin-1"))
    (tmp_path / "d.html").write_bytes(page.format("klingon").encode())
    (tmp_path / "e.html").write_bytes(page.format("zip").encode())
    *fine, c, d, e = read("folder", path=str(tmp_path))
    assert [document.text for document in good(fine)] == ["Köln", "Köln"]
    assert len(broken([e])) == 1, "Python has it, and it's none of text"
    assert broken([c, d]) == [
        (f"{tmp_path}/c.html", "line 1 isn't utf-8 (byte 0xf6); save it as UTF-8"),
        (f"{tmp_path}/d.html", "unknown encoding klingon; save it as UTF-8"),
    ]


def pdf(text: str, title: str = "The title") -> bytes:
    """A PDF of one page that shows `text`."""
    lines = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
    content = f"BT /F1 12 Tf 14 TL 72 720 Td {lines} ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Title (%s) >>" % title.encode(),
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % numbered for numbered in enumerate(objects, start=1))
    return b"%PDF-1.4\n" + body + b"trailer\n<< /Size 6 /Root 1 0 R /Info 5 0 R >>\nstartxref\n0\n%%EOF"


def test_pdfs_are_read_if_they_hold_text(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Hello from a page."))
    (tmp_path / "b.pdf").write_bytes(pdf("Hello")[:200])
    scanned, locked = pypdf.PdfWriter(), pypdf.PdfWriter()
    for writer in (scanned, locked):
        writer.add_blank_page(100, 100)
    scanned.write(tmp_path / "c.pdf")
    locked.encrypt("secret", algorithm="RC4-128")
    locked.write(tmp_path / "d.pdf")
    found = read("folder", path=str(tmp_path))
    (document,) = good(found[:1])
    assert (document.title, document.text) == ("The title", "Hello from a page.")
    (tmp_path / "a.pdf").write_bytes(pdf("The boats that sail from Vaumarcus to York are docu-\nmented there."))
    (document,) = good(read("folder", path=str(tmp_path))[:1])
    assert document.text == "The boats that sail from Vaumarcus to York are documented there."
    contents = "\n".join(
        f"{name} . . . . . . {page}" for page, name in enumerate(["Boats", "Cars", "Dogs", "Fares", "Tea"])
    )
    (tmp_path / "a.pdf").write_bytes(pdf(f"{contents}\nBoats\nCars\nDogs"))
    (tmp_path / "a.txt").write_text(f"{contents}\nBoats\nCars\nDogs")
    assert [document.text for document in good(read("folder", path=str(tmp_path))[:2])] == ["Boats\nCars\nDogs"] * 2
    (tmp_path / "a.txt").unlink()
    (tmp_path / "a.pdf").write_bytes(pdf("Hello", "Microsoft Word - lease v3.docx"))
    assert good(read("folder", path=str(tmp_path))[:1])[0].title == "a"
    reasons = [reason for _, reason in broken(found)]
    assert reasons[1] == "its pages have no text, only images; run OCR on it"
    assert reasons[0].startswith("not a readable PDF: ")
    assert reasons[2] == "it is password-protected; save it without a password"


def write_epub(path: Path, body: str) -> None:
    """Write a book whose pages aren't in the order of their names, with a table of contents."""
    opf, container = "http://www.idpf.org/2007/opf", "urn:oasis:names:tc:opendocument:xmlns:container"
    root = f"<container xmlns='{container}'><rootfiles><rootfile full-path='in/c.opf'/></rootfiles></container>"
    title = "<metadata xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>Fares</dc:title></metadata>"
    kind = "media-type='application/xhtml+xml'"
    items = f"<item id='b' href='text/b%201.html' {kind}/><item id='a' href='a.html' {kind}/>"
    contents = f"<item id='n' href='n.html' properties='nav' {kind}/>"
    order = "".join(f"<itemref idref='{item}'/>" for item in "nba")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/container.xml", root)
        manifest = f"{title}<manifest>{items}{contents}</manifest><spine>{order}</spine>"
        archive.writestr("in/c.opf", f"<package xmlns='{opf}' version='3.0'>{manifest}</package>")
        pages = {"n": "<p>Chapter 1</p>", "text/b 1": "<h1>Fares</h1><p>첫 문장.</p>", "a": body}
        for name, page in pages.items():
            archive.writestr(
                f"in/{name}.html", f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{page}</body></html>"
            )


def test_books_are_read_page_by_page(tmp_path: Path) -> None:
    write_epub(tmp_path / "a.epub", "<p>Ask at the desk.</p>")
    (tmp_path / "b.epub").write_bytes((tmp_path / "a.epub").read_bytes()[:300])
    (tmp_path / "c.epub").write_bytes((tmp_path / "a.epub").read_bytes().replace(b"META-INF", b"META_INF"))
    write_epub(tmp_path / "d.epub", "")
    with zipfile.ZipFile(tmp_path / "d.epub", "a") as archive:
        archive.writestr("META-INF/rights.xml", "")
    document, *others = list(read("folder", path=str(tmp_path)))
    assert isinstance(document, Document)
    assert (document.title, document.text.split("\n\n")) == ("Fares", ["첫 문장.", "Ask at the desk."])
    *reasons, encrypted = [reason for _, reason in broken(others)]
    assert len(reasons) == 2 and all(reason.startswith("not a readable EPUB: ") for reason in reasons)
    assert encrypted == "not a readable EPUB: its pages are encrypted (DRM)"


def test_a_file_without_text_is_broken(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("One.\nTwo.\nKöln.".encode("latin-1"))
    (tmp_path / "b.md").write_text("# Nothing but a heading\n \n")
    (tmp_path / "c.txt").write_bytes("One.\nTwo.".encode("utf-16-le"))
    (tmp_path / "d.txt").write_bytes("One.\rTwo.".encode("utf-16"))  # with a mark, and lines of old Macs
    *found, last = read("folder", path=str(tmp_path))
    assert isinstance(last, Document) and last.text == "One.\nTwo."
    assert broken(found) == [
        (f"{tmp_path}/a.txt", "line 3 isn't utf-8 (byte 0xf6); save it as UTF-8"),
        (f"{tmp_path}/b.md", "it holds no text"),
        (f"{tmp_path}/c.txt", "it seems to be UTF-16; save it as UTF-8"),
    ]


def test_a_file_name_that_is_no_unicode_still_gives_a_document(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("Hello.")
    (document,) = good(read("folder", path=str(tmp_path)))
    assert document.id == "caf\N{REPLACEMENT CHARACTER}.txt"
    document.model_dump_json()


def test_marks_of_documentation_tools_are_no_text(tmp_path: Path) -> None:
    tools = """\
# Ferries {#ferries}

!!! note "Seasons"
    The red route runs from **April** on.[^1]

    It stops in October.

???+ warning
    Storms stop all boats.
=== "Linux"

    Use the store.

    ```sh
    apt install ferry  # {% raw %}
    ```

:::tip Save money
Buy a ~~daily~~ *weekly* ticket.
:::

:::::{tab-set}
::::{tab-item} Dogs
:sync: dogs
Dogs pay half.
::::
:::::

```{note}
Bikes are free.
```

```{code-block} python
:linenos:
pay([^1])
```

```{r, echo=FALSE}
plot(1)
```

```{tip}
---
class: wide
---
Boats wait for {py:func}`~ferry.__len__` people.
```

```{toctree}
fares
```

> [!WARNING]
> The pier is closed.

- [ ] Bring food

Pier
: Where boats land.

1. ```
   pay({ref}`x`)
   ```

   ```
   === "A tab"
   ```

{% hint style="info" %}
Ask for `[^2]` at {ref}`the boat <boat>`, or `for {who}`.
{% endhint %}

import Map from './map.js';

{/* Not
shown. */}

An underline
===

[^1]: On board only.
"""
    for name in ("a.mdx", "b.qmd", "c.Rmd"):
        (tmp_path / name).write_text(tools)
    document, *others = good(read("folder", path=str(tmp_path)))
    assert document.title == "Ferries" and [other.text for other in others] == [document.text] * 2
    assert document.text.split("\n\n") == [
        *("Seasons", "The red route runs from April on.", "It stops in October.", "Warning", "Storms stop all boats."),
        *("Linux", "Use the store.", "```sh\napt install ferry  # {% raw %}\n```"),
        *("Save money", "Buy a daily weekly ticket.", "Dogs", "Dogs pay half.", "Bikes are free."),
        *("```python\npay([^1])\n```", "```text\nplot(1)\n```", "Boats wait for ferry.__len__ people."),
        *("Warning: The pier is closed.", "- Bring food", "Pier: Where boats land."),
        "```text\npay({ref}`x`)\n```",
        '```text\n=== "A tab"\n```',
        *("Ask for [^2] at the boat, or for {who}.", "# An underline", "On board only."),
    ]


def test_fences_that_nothing_closes_are_not_read_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text(":::tip\nBring food.\n" * 9)
    (document,) = good(read("folder", path=str(tmp_path)))
    assert document.text == "\n\n".join(["Bring food."] * 9)
    monkeypatch.setattr("generator.corpora.dialects._MOST_READ", 1)
    (document,) = good(read("folder", path=str(tmp_path)))
    assert document.text.count(":::tip") and document.text.count("Bring food.") == 9, "the rest is a program"
