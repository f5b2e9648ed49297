"""Make paragraphs of text whose lines were wrapped, as in PDFs and many text files."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

from generator.common.scripts import is_unspaced

_WIDTHS = range(40, 200)  # of wrapped lines, in columns: shorter ones are lists or verse, longer ones paragraphs
_FULL = 0.85  # of the width; lines of print have letters of different widths
_SMALL = 1 / 3  # of the lines that seem to be wrapped, which go on in small letters
_SENTENCE_ENDS = re.compile(r"(?<!\b[A-Z]\.[A-Z](?=\.$))[.!?:;…。！？：；．][)\]\"'”’»」』）】]*$")
# List items, quotations, headings (“4.4 What is it?”), table rows.
_STARTS_ANEW = re.compile(
    r"\u3000|\s*(?:[•●▪◦‣・>|]|(?:[-–—*+]|#{1,6}|\d{1,3}[.)]|[A-Za-z][.)])\s|\d{1,2}(?:\.\d{1,2})+\s+[A-Z][a-z])"
)
# A word of a language, as in no program, and what ends a sentence.
_PROSE = re.compile(r"(?<!\S)[(\[“\"‘']?[^\W\d_]+(?:[-’'‐][^\W\d_]+)*[-‐.,;:!?)\]”\"’']*(?!\S)")
_STOP = re.compile(r"[.!?:;…][)\]\"'”’»]*(?:\s|$)")
# What a line breaks without a hyphen: “https://www.” and “example.org/boats”, but no other address; “pxelinux.0”.
_ADDRESS = re.compile(r"(?:https?://|ftp://|www\.)\S*(?<=[./=?&_%#:-])$")
_ADDRESS_GOES_ON = re.compile(r"(?!https?:|ftp:)[\w~%+-]+[./=?&#~][\w~%]")
_NAME = re.compile(r"\w[\w-]*(?:\.[\w-]+)+")
# Columns, rulers, rows of a table, headings, and what ends in dots and a number: prices, an index.
_NO_PROSE = re.compile(r"\S(?: {3}|\t)[ \t]*\S|^\W*$|^(?:\||#{1,6}) |(?:\s?\.){4,}\s*\d[\d.,]*\s*$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(?P<title>(?=[^\n]*?\w)[^\n]+)\n(?P<line>([=~^-])\3{2,})[ \t]*$", re.MULTILINE)
_RAGGED = 2  # letters by which an underline may be longer or shorter than its heading
# `man` writes “‐” where it breaks a word.
_HYPHENS = "-\N{HYPHEN}"
_BROKEN_WORD, _FIRST_WORD = re.compile(rf"([^\W\d_]+)[{_HYPHENS}]$"), re.compile(r"^\w*")
_BROKEN = re.compile(rf"\w+[{_HYPHENS}]\n\s*\w+")
_CONTENTS_ENTRY = re.compile(r"(?:\s?\.){4,}\s*(\d{1,4})\s*$")  # “Fares . . . . . . 7”
# “Chapter 2. ”, “A.1 ”
_SECTION_NUMBER = re.compile(r"^(?:[^\W\d_]+ )?(?:\d{1,3}(?:\.\d{1,3})*|[A-Z](?:\.\d{1,3})*|[IVXL]+)[.:]? ")
_SHORTEST_CONTENTS, _LONG_CONTENTS = 5, 20  # entries
_INDEX_ENTRY = re.compile(r"(?:\s?\.){4,}\s*(\d{1,4}(?:,\s*\d{1,4})*)\s*$")  # “boats . . . . . . 3, 7”
_SHORTEST_INDEX, _IN_ORDER = 40, 0.8  # entries; the share of them that stand behind the one above by the alphabet
_BESIDE = 3  # lines from one entry to the next; first halves of entries, and letters, are between
_LETTERS = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]{3}")
# What a running head that names a section begins with: “CHAPTER 5.”, “User Guide Chapter 2”.
_CHAPTER = re.compile(r"((?:[^\W\d_]+\s){1,4})(?:\d{1,3}|[A-Z]|[IVXL]+)(?=[.:]?\s)")


def join_lines(text: str) -> str:
    """Return `text` with each paragraph of wrapped lines as one line, so that its sentences are whole.

    A line goes on in the next one if that one's first word would hardly have fitted, and no sentence ends between them.
    The width is the length that nine of ten lines don't exceed. A text stays as it is if that is no width of wrapped
    text, or if its lines hardly ever go on in small letters, so that it is a list. Of scripts without spaces a line may
    end at any letter. In narrower blocks, such as notes and columns of glossaries, the neighbours give the width, and a
    line goes on in small letters alone.
    """
    lines = [line.rstrip() for line in text.split("\n")]
    lengths = sorted(_columns(line) for line in lines if line)
    width = lengths[len(lengths) * 9 // 10] if lengths else 0
    if width not in _WIDTHS:
        return text
    wrapped = [_goes_on(line, following, _FULL * width) for line, following in pairwise(lines)]
    first = [line.lstrip()[0] for line, is_wrapped in zip(lines[1:], wrapped, strict=True) if is_wrapped]
    if sum(not letter.isupper() for letter in first) < _SMALL * len(first):
        return text
    wrapped = [one or other for one, other in zip(wrapped, _find_narrow(lines), strict=True)]
    names = {*_NAME.findall(text)}
    whole_names = [_is_name(line, following, names, _FULL * width) for line, following in pairwise(lines)]
    words = {word[0] for word in re.finditer(r"\w+", _BROKEN.sub(" ", text))}
    paragraphs = lines[:1]
    for following, is_wrapped, is_name in zip(lines[1:], wrapped, whole_names, strict=True):
        rest = following.lstrip()
        if not (is_wrapped or is_name):
            paragraphs.append(following)
        # “iden-”, “tifier”; but “well-”, “known”. A search reads all of a paragraph, which may be as long as the text.
        elif paragraphs[-1].endswith(tuple(_HYPHENS)) and (half := _BROKEN_WORD.search(paragraphs[-1])):
            other = _FIRST_WORD.findall(rest)[0]
            whole = half[1] + other in words or not (is_name or other in words or other.isdigit())
            paragraphs[-1] = paragraphs[-1][: -1 if whole else None] + rest
        else:
            paragraphs[-1] += ("" if is_name or is_unspaced(paragraphs[-1][-1] + rest[0]) else " ") + rest
    return "\n".join(paragraphs)


def _goes_on(line: str, following: str, full: float) -> bool:
    """Return True if a line that has no room for the next one's first word, by its length `full`, ends no sentence."""
    first = (following.split(maxsplit=1) or [""])[0]
    first = first[:1] if is_unspaced(first) else first
    return bool(
        first
        and _columns(line) + _columns(first) > full
        and not _SENTENCE_ENDS.search(line)
        and not _STARTS_ANEW.match(following)
        and not _NO_PROSE.search(f"{line}\n{following}")
    )


def _is_name(line: str, following: str, names: Set[str], full: float) -> bool:
    """Return True if a line ends within an address, or, without room for the rest, at a dot within one of `names`."""
    last, first = line.rsplit(maxsplit=1)[-1:], following.split(maxsplit=1)[:1]
    if not (last and first) or _STARTS_ANEW.match(following):
        return False
    if _ADDRESS.search(last[0]) and _ADDRESS_GOES_ON.match(first[0]):
        return True
    name = _NAME.match(last[0] + first[0]) if last[0].endswith(".") else None
    return bool(name and len(name[0]) > len(last[0]) and name[0] in names) and _columns(line + first[0]) > full


def _find_narrow(lines: Sequence[str]) -> list[bool]:
    """Return of each line but the last whether it goes on in the next one by the width of the lines around it.

    Both are then words of a language; and a sentence ends in the line where that stops. A broken word goes on in a
    block of any width.
    """
    lengths = [_columns(line) for line in lines]
    found, broken = list[bool](), list[bool]()
    for number, (line, following) in enumerate(pairwise(lines)):
        width = max(lengths[max(number - 1, 0) : number + 2])
        broken.append(bool(_BROKEN_WORD.search(line)))
        goes_on = following[:1].islower() and _goes_on(line, following, 0 if broken[-1] else _FULL * width)
        # “git log” and “git status” are rows of a table, and so are “type:” and “size:”
        first = following.split(maxsplit=1)[0] if goes_on else ""
        goes_on = goes_on and not first.endswith(":") and not line.startswith(f"{first} ")
        goes_on = goes_on and (broken[-1] or (width in _WIDTHS and _is_prose(line, 5)))
        found.append(goes_on and _is_prose(line, 2) and _is_prose(following, 1))
    ends = False
    for number in reversed(range(len(found))):
        if found[number : number + 2] != [True, True]:
            ends = bool(_STOP.search(lines[number + 1]))
        found[number] = found[number] and (ends or broken[number])
    return found


def _is_prose(line: str, least: int) -> bool:
    """Return True if four of five words of a line, and of `least`, are of a language."""
    return 5 * len(_PROSE.findall(line)) >= 4 * max(least, len(line.split()))


def _columns(text: str) -> int:
    """Return the width of a text in columns: Chinese, Japanese and Korean letters take two."""
    return len(text) + (0 if text.isascii() else sum(unicodedata.east_asian_width(letter) in "WF" for letter in text))


def mark_headings(text: str) -> str:
    """Return `text` with the lines that are underlined as headings of Markdown: of the first level with “=”."""

    def mark(found: re.Match[str]) -> str:
        title, line = found["title"].strip(), found["line"]
        if abs(len(title) - len(line)) > _RAGGED or _NO_PROSE.search(title):
            return found[0]
        return f"{'#' if line[0] == '=' else '##'} {title}"

    return _UNDERLINED.sub(mark, text)


def mark_outline(page: str, outline: Sequence[tuple[str, int]]) -> str:
    """Return a PDF's page with what its outline names, with or without a number before, as headings of Markdown.

    Args:
        outline: the titles that are on the page, in order, and their levels from 0.
    """
    lines = page.split("\n")
    shown = [" ".join(line.split()) for line in lines]
    forms = [{line.casefold(), _SECTION_NUMBER.sub("", line).casefold()} for line in shown] if outline else []
    for title, level in outline:
        wanted = " ".join(title.split()).casefold()
        found = (number for number, form in enumerate(forms) if wanted in form and wanted)
        if (number := next(found, None)) is not None:
            lines[number], forms[number] = f"{'#' * min(level + 1, 6)} {shown[number]}", set()
    return "\n".join(lines)


def join_pages(pages: Sequence[str]) -> str:
    """Return the text of a PDF's pages: without page heads, tables of contents and indexes, wrapped lines joined."""
    return join_lines(drop_contents("\n".join(drop_running_heads(pages)), len(pages)))


def drop_contents(text: str, pages: int = 0) -> str:
    """Return `text` without tables of contents and, if it has `pages`, without indexes.

    The former are lines that end in dots and a page, no page before the one above, and half of them are headings
    elsewhere, unless there are many, up to `pages` (lists of figures). Indexes are many such lines in the order of the
    alphabet. First halves of entries go too.
    """
    lines = text.split("\n")
    entries = {number: int(entry[1]) for number, line in enumerate(lines) if (entry := _CONTENTS_ENTRY.search(line))}
    runs, last = list[list[int]](), 0
    for number, page in entries.items():
        if not runs or page < last:
            runs.append([])
        runs[-1].append(number)
        last = page
    known = {line.strip(" .#") for line in lines}

    def is_contents(run: list[int]) -> bool:
        if len(run) >= _LONG_CONTENTS and entries[run[-1]] <= pages:
            return True
        titles = [_CONTENTS_ENTRY.sub("", lines[number]).strip(" .") for number in run]
        return len(run) >= _SHORTEST_CONTENTS and sum(title in known for title in titles) >= len(run) / 2

    dropped = {number for run in runs if is_contents(run) for number in run} | _find_indexes(lines, pages)
    for one, other in pairwise(sorted(dropped)):
        if other - one <= _BESIDE:
            dropped.update(range(one, other))
    return "\n".join(line for number, line in enumerate(lines) if number not in dropped)


def _find_indexes(lines: Sequence[str], pages: int) -> set[int]:
    """Return the numbers of lines that end in dots and page numbers, up to `pages`, many in alphabetical order."""
    indexes, run = set[int](), list[int]()
    for number in [*(number for number, line in enumerate(lines) if _INDEX_ENTRY.search(line)), len(lines) + _BESIDE]:
        if run and number - run[-1] > _BESIDE:
            entries = [_INDEX_ENTRY.split(lines[at]) for at in run]
            words = ["".join(_LETTERS.findall(entry[0])).casefold() for entry in entries]
            in_order = sum(one <= other for one, other in pairwise(words)) >= _IN_ORDER * len(run)
            last = max(int(page) for entry in entries for page in entry[1].split(","))
            indexes.update(run if len(run) >= _SHORTEST_INDEX and in_order and last <= pages else [])
            run = []
        run.append(number)
    return indexes


def drop_running_heads(pages: Sequence[str]) -> list[str]:
    """Return the pages without running heads: first or last lines on three or more, whatever page number they hold.

    Where a page number begins or ends the line on half of the pages, the rest may differ (“6 Chapter 2. Fares”). A line
    of several words that stands on a third of the pages, and on five, goes wherever it stands. Heads of tables stay
    where a table goes on.
    """
    split = [page.strip().split("\n") for page in pages]
    everywhere = Counter(line for lines in split for line in {line.strip() for line in lines})
    often_enough = max(5, len(pages) / 3)
    heads = {line for line, n in everywhere.items() if n >= often_enough and len(re.findall(r"\w{2,}", line)) > 2}
    three = (row for lines in split for row in zip(lines, lines[1:], lines[2:], strict=False))
    tables = {
        head for head, rule, row in three if rule.startswith("| ---") and row.startswith("|") and everywhere[row] < 3
    }
    heads -= tables
    chapters = _find_chapters(split)
    split = [[line for line in lines if line.strip() not in heads] or [""] for lines in split]
    ends = [{form for line in (lines[0], lines[-1]) for form in _forms(line, n)} for n, lines in enumerate(split)]
    counts, half = Counter(form for forms in ends for form in forms), len(pages) / 2
    often = {form for form, n in counts.items() if n >= 3 and (isinstance(form, str) or n >= half)}
    for number, lines in enumerate(split):
        for end in (0, -1):
            if lines and lines[end] not in tables and not often.isdisjoint(_forms(lines[end], number)):
                del lines[end]
    _drop_sections(split, tables, chapters)
    return ["\n".join(lines) for lines in split]


def _find_chapters(pages: Sequence[list[str]]) -> set[str]:
    """Return what running heads say before a chapter's number: “CHAPTER”, “User Guide Chapter”; none if there are none.

    They are within the first and the last two lines of pages, and those of a chapter follow each other. On a third of
    the pages is one, and on five at least.
    """
    found = defaultdict[str, list[str]](list)
    for lines in pages:
        starts = {_CHAPTER.match(line.strip()) for line in (*lines[:2], *lines[-2:])}
        for kind, chapter in {start[1]: start[0] for start in starts if start}.items():
            found[kind].append(chapter)
    running = {
        kind
        for kind, each in found.items()
        if 1 + sum(a != b for a, b in pairwise(each)) == len({*each}) <= len(each) / 2
    }
    return running if sum(len(found[kind]) for kind in running) >= max(5, len(pages) / 3) else set()


def _drop_sections(pages: Sequence[list[str]], tables: Set[str], chapters: Set[str]) -> None:
    """Delete first and last lines of pages that name a section.

    They begin with one of `chapters`; or they are the same on three neighbouring pages, and a third of the pages, and
    five at least, have such a line.
    """
    for end in (0, -1):
        lines = [page[end].strip() if page and page[end] not in tables else "" for page in pages]
        found = defaultdict[str, list[int]](list)
        for number, line in enumerate(lines):
            if _WORD.search(line):
                found[line].append(number)
        same = {line for line, at in found.items() if len(at) >= 3 and at[-1] - at[0] < 2 * len(at)}
        if sum(len(found[line]) for line in same) < max(5, len(pages) / 3):
            same = set()
        for page, line in zip(pages, lines, strict=True):
            if line in same or ((chapter := _CHAPTER.match(line)) and chapter[1] in chapters):
                del page[end]


def _forms(line: str, page: int) -> Iterator[str | int]:
    """Yield a line's text, and the text around each of its numbers with how far the number is from the page's.

    Of a number at the line's beginning or end yield that distance alone, too.
    """
    yield line.strip()
    for number in re.finditer(r"^\d{1,6}(?=\s)|(?<=\s)\d{1,6}$", line.strip()):
        yield int(number[0]) - page
    for number in re.finditer(r"(?<!\d)\d{1,6}(?!\d)", line):
        yield f"{line[: number.start()]}\n{line[number.end() :]}\n{int(number[0]) - page}".strip(" ")
