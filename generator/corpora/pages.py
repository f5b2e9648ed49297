"""Read the title and the text of a page: what a reader sees, with headings, list items and code as in Markdown."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from generator.corpora.base import FormatError
from generator.errors import describe

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import PageElement, Tag

# The parts of a page that aren't its text.
_BOILERPLATE = (
    "head, title, script, style, noscript, template, svg, object, nav, footer, [hidden], "
    "aside:not([epub\\:type*=note]), "  # those of books are notes
    "annotation, button, select, textarea, "  # formulas in TeX, beside the same as text; forms
    "[role=navigation], [role=banner], [role=contentinfo], [role=search], "
    "header:not(:has(h1, h2, h3), article *, main *, section *), "  # of a site
    # Tables of contents, and links to headings, notes, sources and other pages, of Confluence, DocBook, Docutils,
    # Doxygen, Drupal, MediaWiki, MkDocs and Sphinx.
    ".book-navigation, #breadcrumbs, .catlinks, .contents.topic, .docnav, .expand-control, .headerlink, "
    ".Inline-Template, .longdesc-link, .mw-cite-backlink, .mw-editsection, .mw-jump-link, .navfooter, "
    ".navheader, .page-metadata, .pageSection:has(.pageSectionTitle), #footer, .printfooter, .shortdescription, "
    "#siteSub, #titlearea, .toc, .toc-macro, .toctree-wrapper, .viewcode-link, [class*=footnote-back], "
    ".reversefootnote, .footnote-reference, sup:has(a[href*='#']), a[href*='#'] > sup"
)
_TO_PLACES = frozenset(("¶", "§", "#", "🔗", "More..."))  # what links to a heading say; the last is Doxygen's
_LINE_NUMBERS = re.compile(r"\s*1(?:\n\s*\d+)+\s*")
# What blogs, newspapers and shops put beside their text, by its class.
_BESIDE = re.compile(r"comment|cookie|newsletter|\brelated", re.IGNORECASE)
# Of a menu: links, at least; their characters, at most, in the mean; their share of its characters, and what is left.
_LINKS, _LINK, _LINKED, _UNLINKED = 3, 80, 0.6, 200
_BLOCKS = frozenset(
    (
        "p div section article main header h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption tr br hr blockquote pre "
        "figure figcaption details summary fieldset form address"
    ).split()
)
# What an element ends where it begins, unless it is inside one of the last ones.
_ENDED = {
    "p": (("p",), (*_BLOCKS - {"p"}, "td", "th")),
    "li": (("li",), ("ul", "ol", "menu")),
    **dict.fromkeys(("dt", "dd"), (("dt", "dd"), ("dl",))),
    **dict.fromkeys(("td", "th"), (("td", "th"), ("tr", "table"))),
    "tr": (("tr",), ("table",)),
    **dict.fromkeys(("thead", "tbody", "tfoot"), (("thead", "tbody", "tfoot"), ("table",))),
}
_HEADINGS = {f"h{level}": f"{level * '#'} " for level in range(1, 7)}
# `str.split` takes the first four for white space.
_BREAK, _CELL_BREAK, _TERM_END, _NOTE, _CELL_END = "\x1f", "\x1e", "\x1d", "\x1c", " | "
_EMPTY_CELL = "\4 "  # the end of a row's first cell without text: “| Mon | Tue”
# A term and the paragraph that explains it become one: “Assets: things you own”, “Note: it is closed”.
_TERM = re.compile(r"([^\s.?!:：])(?:\s*[:：])?\s*\x1d[\s|]*(?![-#`\s|\1]|\d+\. )")
# So do several terms with one explanation: “-f, --force: as it says”
_TERM_ENDS = {"dd": _TERM_END, "dt": 2 * _TERM_END}
_TERMS = re.compile(r"([^\s.?!:])[^\S\x1f]*\x1d\x1d\s*")
# Between Chinese and Japanese letters the end of a source's line is no space.
_WIDE = "\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff60"
_LINE_END = re.compile(rf"(?<=[{_WIDE}])[ \t\r]*\n[ \t\r\n]*(?=[{_WIDE}])")
_NOTE_BEFORE_STOP = re.compile(r"(?:[ \n]*\x1c)+(?=[.,;:!?)])")
_SUPERSCRIPT = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_LABELS = ".admonition-title, :is(.caution, .important, .note, .tip, .warning) > table th"  # the latter are DocBook's
LONGEST_ROW = 600  # characters
_PROGRAM = re.compile(
    r"\b(?:literal-block|doctest|code|highlight)|(?<!\S)(?:programlisting|screen|synopsis"  # of DocBook
    r"|fragment|verbatim|(?:small)?(?:example|lisp)(?:-preformatted)?)(?!\S)"  # of Doxygen and Texinfo
)
# “language-sh”, “highlight-sh” (Sphinx), “highlight-source-sh” (GitHub), “code sh literal-block” (Docutils); but not
# Confluence's “code panel”
_LANGUAGE = re.compile(
    r"\b(?:language-|highlight-(?:source-)?|code )(?!(?:default|literal|none|panel|source)\b)([\w+#.-]+)"
)
_VERBATIM = str.maketrans(" \n\t|", "\1\2\3\4")  # of what has lines: its white space and bars stay as they are
_SHOWN = str.maketrans("\1\2\3\4", " \n\t|")


@cache
def _page_class() -> "type[BeautifulSoup]":
    from bs4 import BeautifulSoup

    class Page(BeautifulSoup):
        """A page whose paragraphs, items, rows and cells end where the next begins: HTML lets end tags be left out.

        Elements would be nested as deep as there are of them, which takes Beautiful Soup quadratic time.
        """

        def handle_starttag(self, name: str, *args: Any, **options: Any) -> "Tag | None":
            ended, around = _ENDED.get(name, ((), ()))
            if ended:
                for tag in reversed(self.tagStack):
                    if tag.name in (*ended, *around):
                        if tag.name in ended:
                            self.handle_endtag(tag.name)
                        break
            return super().handle_starttag(name, *args, **options)

    return Page


def parse_html(page: str) -> "BeautifulSoup":
    from bs4.exceptions import ParserRejectedMarkup

    try:
        soup = _page_class()(page, "html.parser")
    except ParserRejectedMarkup as error:
        raise FormatError(f"not HTML: {describe(error)}") from error
    for line_break in soup.select(", ".join(f"{heading} br" for heading in _HEADINGS)):
        line_break.replace_with(" ")  # a heading is a line
    return soup


def read_title(soup: "BeautifulSoup") -> str:
    heading = soup.title or soup.h1
    return heading.get_text() if heading else ""


def read_page(soup: "BeautifulSoup") -> str:
    """Return the text of a page: a block a paragraph, a table's row a line; headings and list items as in Markdown.

    Of a page that names its main part, it is the text of that.
    """
    main = soup.select("main, [role=main]")
    text = "".join(_strings(main[0] if len(main) == 1 else soup))
    text = _LINE_END.sub("", _NOTE_BEFORE_STOP.sub("", text))
    text = _TERMS.sub(r"\1, ", text)
    blocks = _TERM.sub(r"\1: ", text).replace(_TERM_END, _BREAK).split(_BREAK)
    # A row is a line whatever paragraphs its cells have, unless the table lays out a page.
    parts = (part for block in blocks for part in (block.split(_CELL_BREAK) if len(block) > LONGEST_ROW else [block]))
    paragraphs = (" ".join(part.split()).strip(" |") for part in parts)
    return "\n\n".join(paragraph.translate(_SHOWN) for paragraph in paragraphs if paragraph)


def spread_cells(table: "Tag") -> Iterator[tuple["Tag", list["Tag"]]]:
    """Yield each row of a table and its cells, with one that spans rows or columns in each of these.

    The only cell of a row stands there once (DocBook's notes). Rows that would be too long for a line stay as they are.
    """
    held: dict[int, tuple[Tag, int]] = {}  # by column, a cell of a row above, and the rows that it still spans
    for row in table.find_all("tr"):
        own = row.find_all(("td", "th"))
        cells: list[Tag] = []
        alone = len(own) == 1
        left = [(cell, _span(cell, "rowspan")) for cell in own for _ in range(1 if alone else _span(cell, "colspan"))]
        left.reverse()
        while found := held.pop(len(cells), None) or (left.pop() if left else None):
            if found[1] > 1:
                held[len(cells)] = found[0], found[1] - 1
            cells.append(found[0])
        yield row, cells if sum(len(cell.get_text()) for cell in cells) <= LONGEST_ROW else own


def _span(cell: "Tag", name: str) -> int:
    return int(found[0]) if (found := re.fullmatch(r"[1-9]\d?", str(cell.get(name, "")))) else 1


def _strings(soup: "Tag") -> Iterator[str]:
    """Yield the visible strings of a page, with marks where blocks begin and end and where cells end.

    The tree is not changed: a change takes time by what is nested in it.
    """
    from bs4.element import CData, NavigableString, Tag

    hidden = {id(tag) for tag in soup.select(_BOILERPLATE)} - {id(tag) for tag in _find_shown(soup)}
    hidden |= {id(link) for link in soup.select("a[href*='#']") if link.get_text(strip=True) in _TO_PLACES}
    hidden |= {id(lines) for lines in soup.select("td pre") if _LINE_NUMBERS.fullmatch(lines.get_text())}
    hidden |= _find_menus(soup, hidden)
    tables = soup.select("table:not(:has(table)):has([rowspan], [colspan])")
    rows = {id(row): cells for table in tables for row, cells in spread_cells(table)}
    labels, empty = {id(tag) for tag in soup.select(_LABELS)}, _find_empty_cells(soup)
    code = (tag for tag in soup.select("td :is(pre, .fragment)") if "\n" in tag.get_text().strip())
    listings = {id(cell) for tag in code for cell in tag.find_parent("tr") or ()}  # are no cells: code has lines
    ahead: list[PageElement | str] = [soup]  # the next one last
    items: dict[int, str] = {}  # what is written before the items of lists
    before, in_cell = "", False  # what is written before the text that follows; whether that is of a table's cell
    while ahead:
        piece = ahead.pop()
        if isinstance(piece, Tag):
            if id(piece) in hidden:
                if piece.name == "sup" or "footnote-reference" in piece.get_attribute_list("class"):
                    yield _NOTE
                continue
            if piece.name in ("ol", "ul"):
                first = re.match(r"\d{1,9}$", str(piece.get("start", "")))
                own = enumerate(piece.find_all("li", recursive=False), int(first[0]) if first else 1)
                above = items.get(id(piece.find_parent("li")), "")
                indent = (above.count("\1") + 2) * "\1" if above else ""
                items |= {id(item): indent + (f"{number}. " if piece.name == "ol" else "- ") for number, item in own}
            heading = (
                "h6" if "title" in piece.get_attribute_list("class") and piece.name == "p" else piece.name
            )  # DocBook's
            before = _HEADINGS.get(heading) or items.get(id(piece)) or before
            is_cell = piece.name in ("td", "th") and id(piece) not in listings
            in_cell = (in_cell or is_cell) and piece.name != "table"
            mark = (_CELL_BREAK if in_cell else _BREAK) if piece.name in _BLOCKS or id(piece) in listings else ""
            yield mark
            is_term = piece.name == "dt" and mark == _BREAK
            following = getattr(piece.find_next_sibling(), "name", "") if is_term else ""
            end = (_EMPTY_CELL if id(piece) in empty else _CELL_END) if is_cell else _TERM_ENDS.get(following, mark)
            ahead.append(_TERM_END if id(piece) in labels and mark != _CELL_BREAK else end)
            text = _whole(piece)
            before = "" if text.startswith("`") else before  # a fence begins its line
            ahead.extend([NavigableString(text)] if text else reversed(rows.get(id(piece), piece.contents)))
        elif type(piece) is str:
            yield piece
            in_cell = in_cell and piece not in (_CELL_END, _EMPTY_CELL)
            before = before if piece in ("", _CELL_END, _EMPTY_CELL) else ""  # the block had no text
        elif type(piece) is NavigableString or type(piece) is CData:  # and no comment
            yield f"{before}{piece}" if (text := piece.strip()) else str(piece)
            before = "" if text else before


def _find_empty_cells(soup: "Tag") -> set[int]:
    """Return the ids of rows' first cells without text before two with text or more, if another row has one there."""
    cells = soup.select("table:not(:has(table)) tr > :first-child:is(td, th)")
    named = {id(cell.find_parent("table")) for cell in cells if cell.get_text().strip()}
    empty = (cell for cell in cells if id(cell.find_parent("table")) in named and not cell.get_text().strip())
    return {id(cell) for cell in empty if sum(bool(other.get_text().strip()) for other in cell.next_siblings) > 1}


def _find_shown(soup: "Tag") -> Iterator["Tag"]:
    """Yield the last of the parts of a sentence that are all hidden: a script shows one, such as the keys of a system.

    In LibreOffice's help the last are those of any other system: “Press <Command|Ctrl>+F”.
    """
    from bs4.element import Tag

    for last in soup.select("span > [hidden]:last-child:not(:first-child)"):
        around = last.parent.contents if last.parent else ()
        if all(piece.has_attr("hidden") if isinstance(piece, Tag) else not str(piece).strip() for piece in around):
            yield last


def _find_menus(soup: "Tag", hidden: set[int]) -> set[int]:
    """Return the ids of blocks that are links with hardly a word between, and of those named for what stands beside.

    So are paragraphs beside each other that are one link each. None holds the page's heading, and none of those named
    a half of its text. What is `hidden` isn't counted. A table with names above its columns has data, whatever its
    cells link to.
    """
    from bs4.element import NavigableString, Tag

    tables = [table for table in soup.find_all("table") if _has_header(table)]
    data = {id(link) for table in tables for link in table.find_all("a")}
    tags = [tag for tag in (soup, *soup.descendants) if isinstance(tag, Tag)]
    size, linked, links = Counter[int](), Counter[int](), Counter[int]()  # characters, those in links, links
    for tag in reversed(tags):
        own, above = id(tag), id(tag.parent)
        if own in hidden:
            continue
        size[own] += sum(len(text.strip()) for text in tag.find_all(string=True, recursive=False))
        is_link = tag.name == "a" and own not in data
        if is_link and size[own] and not str(tag.get("href", "mailto:")).startswith(("mailto:", "tel:")):
            linked[own], links[own] = size[own], 1
        for counts in (size, linked, links):
            counts[above] += counts[own]

    def is_menu(own: int) -> bool:
        is_linked = linked[own] >= max(_LINKED * size[own], size[own] - _UNLINKED)
        return is_linked and links[own] >= _LINKS and linked[own] < _LINK * links[own]

    def is_one_link(piece: "PageElement") -> bool:
        own = id(piece)
        return getattr(piece, "name", "") in ("p", "div") and links[own] == 1 and linked[own] == size[own]

    def is_beside(own: int, tag: Tag) -> bool:
        return bool(_BESIDE.search(" ".join(tag.get_attribute_list("class") or ""))) and 2 * size[own] < size[id(soup)]

    main = {id(tag) for heading in soup.find_all("h1") for tag in (heading, *heading.parents)}
    blocks = {id(tag): tag for tag in tags if tag.name in _BLOCKS}
    found = {own for own, tag in blocks.items() if own not in main and (is_menu(own) or is_beside(own, tag))}
    for tag in (tag for tag in tags if links[id(tag)] >= _LINKS):
        shown = (each for each in tag.contents if size[id(each)] or (type(each) is NavigableString and each.strip()))
        for is_run, pieces in groupby(shown, is_one_link):
            run = {id(piece) for piece in pieces} if is_run else set()
            if len(run) >= _LINKS and sum(size[own] for own in run) < _LINK * len(run) and run.isdisjoint(main):
                found |= run
    return found


def _has_header(table: "Tag") -> bool:
    """Return True for a table whose first row has several cells, all of them headers."""
    row = table.find("tr")
    cells = row.find_all(("td", "th"), recursive=False) if row else []
    return len(cells) > 1 and all(cell.name == "th" for cell in cells)


def _whole(piece: "Tag") -> str:
    """Return the text of what isn't read piece by piece: a `pre`, and a power such as “10³”; "" of anything else."""
    if piece.name == "pre":
        return _fence(piece, piece.get_text().strip("\n")).translate(_VERBATIM)
    if "fragment" in piece.get_attribute_list("class") and (lines := piece.find_all("div", class_="line")):  # Doxygen's
        return _fence(piece, "\n".join(line.get_text() for line in lines)).translate(_VERBATIM)
    return piece.string.translate(_SUPERSCRIPT) if piece.name == "sup" and piece.string else ""


def _fence(piece: "Tag", text: str) -> str:
    """Return the text of an element with its lines as they are; that of a program between fences, as in Markdown."""
    around = (piece, piece.code, *islice(piece.parents, 2))
    marks = " ".join(name for tag in around if tag for name in tag.get_attribute_list("class") if name)
    is_in_row = "\n" not in text and piece.find_parent("td")
    if not text.strip() or is_in_row or not (piece.code or _PROGRAM.search(marks)):
        return text
    language = _LANGUAGE.search(marks)
    return f"```{language[1] if language else 'text'}\n{text}\n```"
