"""Change the XML of office files where Kreuzberg 4.10 would read another text than a reader sees.

It drops what .docx files write as references (“&amp;”), glues words together at their tabs (“Monday\t9-17”), breaks (of
lines it makes spaces) and hyphens, leaves out the text of a paragraph that a text box is anchored in, the first
footnote, and the numbers and dots of lists that are made by a style, takes an endnote for the footnote with its number,
gives moved text twice, and reads hidden text, sheets and slides and tables of contents. Of .odt files it leaves out
what stands in a span or link behind another element in it (“<a>the <span>site</span></a>”), and lists in cells, and
glues words together at `<text:s/>`; of slides it leaves the stars of bold text; of .rtf files it reads spaces and
hyphens that don't break as “~” and “_”.
"""

import html
import io
import re
import zipfile

# A larger file is read as it is, since all of it would be in memory.
_MOST_BYTES = 500 << 20
# Files of Microsoft's programs with a password are of the older container format, with this entry.
_CONTAINER, _ENCRYPTED = b"\xd0\xcf\x11\xe0", "EncryptedPackage".encode("utf-16-le")
_MOST_BASES = 10  # of a style, which may name each other

_REFERENCE = re.compile(rb"&(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);")
# What stands in a .docx file for the signs that XML can't have as they are, until a page is made of it.
_SIGNS = "&<>\"'"
_STAND_INS = {ord(sign): chr(0x10FF00 + ord(sign)) for sign in _SIGNS}
_LINE_BREAK = chr(0x10FF00 + ord("\n"))
_RESTORED = {ord(_LINE_BREAK): "<br/>"} | {0x10FF00 + ord(sign): html.escape(sign) for sign in _SIGNS}
_BLANK = re.compile(rb'<w:tab ?/>|<w:ptab [^>]*/>|<w:br [^>]*w:type="(?:page|column)"[^>]*/>')
_BREAK = re.compile(rb"<w:(?:br|cr)(?: [^>]*)?/>")
_HYPHEN = re.compile(rb"<w:noBreakHyphen ?/>")
_MOVED = re.compile(rb"<w:moveFrom [^>]*>.*?</w:moveFrom>", re.DOTALL)
_HIDDEN_TEXT = re.compile(
    rb'<w:r(?: [^>]*)?><w:rPr>(?:(?!</w:rPr>).)*?<w:vanish(?: w:val="(?:1|true|on)")? ?/>.*?</w:rPr>'
    rb"(?:(?!<w:r[ >]).)*?</w:r>",
    re.DOTALL,
)
_NOTE = re.compile(rb'(<w:(foot|end)note(?:Reference)? (?![^>]*w:type="(?:sep|con))[^>]*w:id=")(\d+")')
# Tables of contents: the part that Word and Google Docs make of them, and the entries of others.
_CONTENTS = re.compile(
    rb'<w:sdt>(?:(?!</?w:sdt>).)*?<w:docPartGallery w:val="Table of Contents" ?/>.*?</w:sdt>', re.DOTALL
)
_CONTENTS_LINK = re.compile(rb'(?:PAGEREF |w:anchor="(?:__RefHeading__)?)_Toc')
_LINK, _WORDS = re.compile(rb"<w:hyperlink .*?</w:hyperlink>", re.DOTALL), re.compile(rb"<w:t(?: [^>]*)?>([^<]*)</w:t>")
_STYLE = re.compile(rb'<w:style [^>]*w:styleId="([^"]+)"[^>]*>.*?</w:style>', re.DOTALL)
_BASED_ON, _LISTED = re.compile(rb'<w:basedOn w:val="([^"]+)"'), re.compile(rb"<w:numPr>(.*?)</w:numPr>", re.DOTALL)
_STYLED = re.compile(rb'<w:pPr><w:pStyle w:val="([^"]+)" ?/>(?!(?:(?!</w:pPr>).)*<w:numPr>)', re.DOTALL)
_PARAGRAPH = re.compile(rb"<w:p[ >].*?</w:p>", re.DOTALL)
# What older programs show in place of a drawing; both have the text of a box.
_FALLBACK = re.compile(rb"<mc:Fallback>(?:(?!<mc:Fallback>).)*?</mc:Fallback>", re.DOTALL)
_DRAWING = re.compile(rb"<(w:drawing|w:pict)[ >](?:(?!<\1[ >]).)*?</\1>", re.DOTALL)
_IN_BOX = re.compile(rb"<w:txbxContent>(.*?)</w:txbxContent>", re.DOTALL)

_SPAN = re.compile(
    rb"<(\w+:ruby-text)(?: [^>]*)?>[^<]*</\1>|</?\w+:(?:span|a|ruby|ruby-base|meta|soft-page-break|"
    rb"(?:bookmark|change|reference-mark|toc-mark)[\w-]*)(?: [^>]*)?/?>"
)
_ODT_BLANK = re.compile(rb"<\w+:(?:s|tab)(?: [^>]*)?/>")
_ODT_BREAK = re.compile(rb"<\w+:line-break ?/>")
_CELL = re.compile(rb"<(\w+:table-cell)(?: [^>]*(?<!/))?>(?:(?!<\w+:table-cell[ >]).)*?</\1>", re.DOTALL)
_LIST, _NEXT_PARAGRAPH = re.compile(rb"</?\w+:list(?:-\w+)?(?: [^>]*)?>"), re.compile(rb"</(\w+:p)>\s*<\1(?: [^>]*)?>")

_RTF_SIGN = re.compile(rb"(?<!\\)((?:\\\\)*)\\([~_])")  # a space and a hyphen that don't break

_HIDDEN_SHEET = re.compile(rb'<(?:\w+:)?sheet [^>]*\bstate="(?:hidden|veryHidden)"[^>]*/>')
_HIDDEN_SLIDE = re.compile(rb'<p:sld [^>]*\bshow="(?:0|false)"')
_EMPHASIS, _SLIDE_BREAK = re.compile(rb'(<a:rPr[^>]*?) [bi]="(?:1|true)"'), re.compile(rb"<a:br>.*?</a:br>|<a:br ?/>")
_SHAPES = re.compile(rb"<p:spTree>.*</p:spTree>", re.DOTALL)
# A formula whose value the program that wrote it didn't compute; that of a text may be empty.
_NO_VALUE = re.compile(rb'<c (?![^>]*\bt="str")[^>]*><f(?:[^>]*/>|[^>]*>[^<]*</f>)(?:<v ?/>|<v></v>)?</c>')


def is_locked(data: bytes) -> bool:
    """Return whether an office file has a password."""
    if data.startswith(_CONTAINER):
        return _ENCRYPTED in data
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            return b"encryption-data" in parts.read("META-INF/manifest.xml")
    except Exception:  # of a broken file, which its reader reports, and of those of Microsoft, which have no manifest
        return False


def count_unknown_values(data: bytes) -> int:
    """Return how many formulas of a workbook have no value; 0 for what is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            sheets = [part for part in book.namelist() if part.startswith("xl/worksheets/")]
            return sum(len(_NO_VALUE.findall(book.read(part))) for part in sheets)
    except Exception:  # of a broken file, which its reader reports
        return 0


def restore_signs(page: str) -> str:
    """Return the page that was made of a file that `as_shown` returned, with the signs that it replaced."""
    return page.translate(_RESTORED)


def as_shown(data: bytes) -> bytes:
    """Return an office file with only the text that a reader sees; what is none comes back as it is."""
    if data.startswith(rb"{\rtf"):
        return _RTF_SIGN.sub(lambda found: found[1] + (b" " if found[2] == b"~" else b"-"), data)
    made = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
            if sum(part.file_size for part in old.infolist()) > _MOST_BYTES:
                return data
            lists = _find_lists(old.read("word/styles.xml")) if "word/styles.xml" in old.namelist() else {}
            for part in old.infolist():
                new.writestr(part.filename, _change(part.filename, old.read(part), lists))
    except Exception:  # of a broken file, which its reader reports
        return data
    return made.getvalue()


def _find_lists(styles: bytes) -> dict[bytes, bytes]:
    """Return what makes paragraphs a list's items, by the style that has or inherits it; headings aren't items."""
    found, lists = {style[1]: style[0] for style in _STYLE.finditer(styles)}, dict[bytes, bytes]()
    for name, style in found.items():
        for _ in range(_MOST_BASES):
            if b"<w:outlineLvl " in style:
                break
            if own := _LISTED.search(style):
                level = b"" if b"<w:ilvl " in own[1] else b'<w:ilvl w:val="0"/>'
                lists[name] = b"<w:numPr>%s%s</w:numPr>" % (level, own[1])
                break
            style = found.get(base[1], b"") if (base := _BASED_ON.search(style)) else b""
    return lists


def _change(name: str, part: bytes, lists: dict[bytes, bytes]) -> bytes:
    if re.match(r"word/[^/]+\.xml$", name):
        part = _STYLED.sub(lambda found: found[0] + lists.get(found[1], b""), part) if lists else part
        part = _free_boxes(_HIDDEN_TEXT.sub(b"", _MOVED.sub(b"", _CONTENTS.sub(b"", part))))
        part = _PARAGRAPH.sub(lambda found: b"" if _is_contents_entry(found[0]) else found[0], part)
        part = _NOTE.sub(lambda found: found[1] + (b"10" if found[2] == b"foot" else b"20") + found[3], part)
        part = _BLANK.sub(b'<w:t xml:space="preserve"> </w:t>', part)
        part = _BREAK.sub(f"<w:t>{_LINE_BREAK}</w:t>".encode(), part)
        part = _HYPHEN.sub(b"<w:t>-</w:t>", part)
        return _REFERENCE.sub(_resolve, part)
    if name == "content.xml":
        part = _ODT_BREAK.sub(_LINE_BREAK.encode(), _ODT_BLANK.sub(b" ", _SPAN.sub(b"", part)))
        return _CELL.sub(lambda cell: _NEXT_PARAGRAPH.sub(b" ", _LIST.sub(b"", cell[0])), part)
    if name == "xl/workbook.xml":
        return _HIDDEN_SHEET.sub(b"", part)
    if name.startswith("ppt/slides/"):
        part = _SHAPES.sub(b"<p:spTree/>", part) if _HIDDEN_SLIDE.search(part) else part
        part = _EMPHASIS.sub(rb"\1", _EMPHASIS.sub(rb"\1", part))  # bold and italics
        return _SLIDE_BREAK.sub(f"<a:r><a:t>{_LINE_BREAK}</a:t></a:r>".encode(), part)
    return part


def _is_contents_entry(paragraph: bytes) -> bool:
    """Return True for a paragraph that is a link to a heading, or ends in its page behind a tab.

    “Prices are on page 3.” may have such a link, too.
    """
    if not _CONTENTS_LINK.search(paragraph):
        return False
    beside, words = b"".join(_WORDS.findall(_LINK.sub(b"", paragraph))), _WORDS.findall(paragraph)
    return not beside.strip() or (b"<w:tab/>" in paragraph and words[-1].strip().isdigit())


def _resolve(reference: re.Match[bytes]) -> bytes:
    return html.unescape(reference[0].decode()).translate(_STAND_INS).encode()


def _free_boxes(part: bytes) -> bytes:
    """Return XML with the paragraphs of each text box before the one that it is anchored in."""
    boxes: list[bytes] = []

    def take(drawing: re.Match[bytes]) -> bytes:
        box = b"".join(_IN_BOX.findall(drawing[0]))
        if not box:
            return drawing[0]
        boxes.append(box)
        return b"\0%d\0" % (len(boxes) - 1)  # which no XML has

    def put_before(paragraph: re.Match[bytes]) -> bytes:
        pieces = re.split(rb"\0(\d+)\0", paragraph[0])
        return b"".join([*(boxes[int(number)] for number in pieces[1::2]), *pieces[::2]])

    part = _DRAWING.sub(take, _FALLBACK.sub(b"", part))
    return _PARAGRAPH.sub(put_before, part) if boxes else part
