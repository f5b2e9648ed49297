"""Lines that were wrapped as paragraphs, and pages without what stands on each."""

import textwrap
import time
from pathlib import Path

from generator.common.sentences import sentences
from generator.corpora.folder import SAMPLE_DOCUMENTS
from generator.corpora.lines import drop_contents, drop_running_heads, join_lines, mark_headings


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def test_wrapped_paragraphs_have_their_sentences_again() -> None:
    files = list(SAMPLE_DOCUMENTS.glob("*.md"))
    assert files
    for file in files:
        paragraphs = [line for line in file.read_text().split("\n") if len(line) > 150 and line[0].isalpha()]
        whole = split("\n\n".join(paragraphs))
        for width in (60, 72, 100):
            text = "\n\n".join(textwrap.fill(paragraph, width) for paragraph in paragraphs)
            found = split(join_lines(text))
            # “cost”, “34. They …” at the beginning of a line is an item of a list
            assert len(set(whole) - set(found)) <= 2 < len(set(whole) - set(split(text)))


def test_lines_that_were_not_wrapped_stay() -> None:
    full = "All of the volunteers who measure the water of the River Wending bring"
    others = [
        "A heading, all of the volunteers who measure the water of the River We",
        "2.1 What is it",
        "- an item of a list that is as long as the lines of the paragraphs are",
        "- Another item",
        "Site      pH      clarity of the water in centimetres at the time of it",
        "-----------------------------------------------------------------------",
        "Harrowmere Bridge",
        "It ends here, and so does the line which is full to the last letter: no.",
        "Next",
    ]
    ends = ["boots and a net.", "Boots and a net."] * 5
    text = "\n".join([*(f"{full}\n{end}" for end in ends), *others])
    assert join_lines(text) == "\n".join([*(f"{full} {end}" for end in ends), *others])
    items = "\n".join(
        f"Volunteer {n} of the River Wending, who measures {'water ' * (n % 4)}at its bridge" for n in range(9)
    )
    assert join_lines(items) == items
    table = f"{text}\n| a row of a table that is as long as the lines of the text around it |\nand its text."
    assert join_lines(table).endswith("around it |\nand its text.")
    prices = "\n".join(f"{name:.<66} {price}" for price, name in enumerate(["Tea", "cake", "Soup", "salad", "Fish"], 2))
    assert join_lines(f"{text}\n{prices}").endswith(f"\n{prices}")
    initials = "Late last year the offer of the volunteers who measure water to the E.F.\nHutton Group was rejected."
    assert join_lines(f"{text}\n{initials}").endswith("to the E.F. Hutton Group was rejected.")
    verse = "Shall I compare thee\nTo a summer's day\nThou art more lovely\nAnd more temperate"
    assert join_lines(verse) == verse


def test_addresses_and_names_that_a_line_breaks_at_a_dot_are_whole() -> None:
    text = (
        "The boot loader has the name pxelinux.0, and your DHCP server must tell it to all who ask, so write pxelinux."
        "\n0 there. All of it is explained on the pages that the project keeps for its users (https://www.\n"
        "example.org/boot.html), and its packages are listed on the site of the same project, see https://example.org/\n"
        "package=boot for them. The files are on a server of the university in the capital, https://example.org/files/.\n"
        "They are free, and a mirror of them is kept by those who run it for the pleasure of others, https://example.org/\n"
        "as everybody knows."
    )
    joined = join_lines(text)
    assert "write pxelinux.0 there." in joined and "(https://www.example.org/boot.html)," in joined
    assert "https://example.org/package=boot for" in joined and "https://example.org/files/.\nThey" in joined
    assert joined.endswith("https://example.org/ as everybody knows.")


def test_narrower_blocks_of_wrapped_lines_are_joined() -> None:
    wide = "All of the volunteers who measure the water of the River Wending bring boots and a net.\n" * 20
    note = (
        "The graphical installer needs more memory than the plain one does. If your computer has less, it will "
        "automatically fall back to the latter, as a user guide on installing tells."
    )
    lines = textwrap.fill(note.replace("automatically", "auto-matically"), 58)
    assert "auto-\n" in lines
    assert join_lines(f"{wide}NOTE\n{lines}\n{wide}") == f"{wide}NOTE\n{note}\n{wide}"
    items = "\n".join(f"the names of all the boats that sail on {day}." for day in ("mondays", "tuesdays", "fridays"))
    code = "if is_full(bucket) and not is_empty(the_other_one):\nempty(bucket, into=the_other_one, all=True)\nrun(it)."
    for others in (items, code):
        assert join_lines(f"{wide}{others}\n{wide}") == f"{wide}{others}\n{wide}"


def test_a_word_that_was_broken_at_the_end_of_a_line_is_whole_unless_its_parts_are_words() -> None:
    text = "Every identifier of this library is a name that the library makes iden-\ntifier by iden-\ntifier."
    assert "makes identifier by" in join_lines(text)
    assert "makes identifier by" in join_lines(text.replace("-", "\N{HYPHEN}"))  # as `man` breaks words
    text = "This library is among those that are known by everybody, and so is well-\nknown."
    assert join_lines(text).endswith("so is well-known.")
    text = (
        "All of the libraries of this town that are known are on a list of its admin-\nistrator, who sits in room E-34."
    )
    assert "of its administrator, who" in join_lines(text)
    text = "This is the list of libraries, which the town keeps together in room E-\n34 of its house."
    assert "in room E-34 of" in join_lines(text)


def test_underlined_lines_are_headings() -> None:
    text = "Ferries\n=======\n\nA fare:\n\nOn Sundays\n----------\nIt is free.\n"
    others = "Who      Fare\n-------------\nAll      7\n--\nno heading\n---"
    marked = "# Ferries\n\nA fare:\n\n## On Sundays\nIt is free.\n"
    assert mark_headings(text + others) == marked + others


def test_running_heads_and_page_numbers_are_no_text() -> None:
    pages = [
        f"The manual {number}\nSchedule {letter}\nText of it.\n{number} of 4" for number, letter in enumerate("ABCD", 1)
    ]
    assert drop_running_heads(pages) == [f"Schedule {letter}\nText of it." for letter in "ABCD"]
    assert drop_running_heads(["Text.", "", "More."]) == ["Text.", "", "More."]
    heads = ["2 Fares", "2.1. Sundays 3", "4 Boats", "Seven boats sail in 2024", "6 Dogs"]
    pages = [f"{head}\nText {letter}." for letter, head in zip("ABCDE", heads, strict=True)]
    assert drop_running_heads(pages) == ["Text A.", "Text B.", "Text C.", f"{heads[3]}\nText D.", "Text E."]
    assert drop_running_heads(pages[1:4]) == pages[1:4]
    few = [f"{page if page < 3 else 99} {word}\nText {word}." for page, word in enumerate("ABCDEFGH")]
    slides = [f"{page}. {word}\nText {word}." for page, word in enumerate("ABCDEFGH")]
    assert drop_running_heads(few)[0] == few[0] and drop_running_heads(slides)[0] == slides[0]
    pages = [f"A title\nAll rights are reserved.\nText {letter}.\nA long, long day" for letter in "ABCDE"]
    pages += [f"Text {letter}.\nIt is a day\nDay {letter}" for letter in "FGHIJKL"]
    expected = [*(f"Text {letter}." for letter in "ABCDE"), *(f"Text {letter}.\nDay {letter}" for letter in "FGHIJKL")]
    assert drop_running_heads(pages) == expected
    pages = [f"A{n * n}\nor\n{'It is a day' if n < 6 else n}\nB{n * n}" for n in range(30)]
    assert drop_running_heads(pages) == pages
    box, table = "| Doc | Rev |\n| --- | --- |\n| 12 | 3 |", "| Nr | Name |\n| --- | --- |\n| {0} | Ship {0} |"
    tables = [table.format(number) for number in range(5)]
    assert drop_running_heads([f"{box}\n{page}" for page in tables])[3].endswith(f"\n{tables[3]}")
    assert "Doc" not in "".join(drop_running_heads([f"{box}\n{page}" for page in tables]))
    assert drop_running_heads([*["All rights are reserved."] * 5, "Text."]) == [*[""] * 5, "Text."]


def test_running_heads_that_name_the_section_are_no_text() -> None:
    texts = [f"They call it {letter}." for letter in "abcdefgh"]
    sections = ["3. FARES 3.1. ADULTS", "3. FARES 3.2. DOGS", "3. FARES 3.2. DOGS", "4. BOATS", "4. BOATS 4.1. OARS"]
    heads = [f"CHAPTER {section}" for section in [*sections, "4. BOATS", "5. HARBOURS", "5. HARBOURS"]]
    assert drop_running_heads([f"{head}\n{text}" for head, text in zip(heads, texts, strict=True)]) == texts
    feet = [*["Chapter 1 Fares"] * 5, "Chapter 2 Boats", "Chapter 2 Boats", "Chapter 3 Dogs"]
    pages = [
        f"{text}\nOur guide {foot}\nPage {page}" for page, (text, foot) in enumerate(zip(texts, feet, strict=True), 7)
    ]
    assert drop_running_heads(pages) == texts
    exercises = [f"Exercise {number * number}. Row.\n{text}" for number, text in enumerate(texts)]
    scattered = [f"Question {1 + number % 2} of {number * number}\n{text}" for number, text in enumerate(texts)]
    for others in (exercises, scattered):
        assert drop_running_heads(others) == others


def test_tables_of_contents_go_and_prices_stay() -> None:
    contents = [
        "1 Fares . . . . . . . . 1",
        "1.1 Sundays.......1",
        "Boats ........ 3",
        "Dogs ......... 3",
        "Index ....... 12",
    ]
    prices = [f"{name} ........ {price}" for price, name in enumerate(["Tea", "Cake", "Soup", "Salad", "Fish"], 2)]
    text = ["1 Fares", "Adults pay.", "1.1 Sundays", "Free.", "Boats", "Two."]
    assert drop_contents("\n".join([*prices, *contents, *text])) == "\n".join([*prices, *text])
    assert drop_contents("\n".join([*contents[:4], *text])) == "\n".join([*contents[:4], *text])


def test_an_index_goes_and_so_do_the_first_halves_of_entries_of_a_table_of_contents() -> None:
    words = sorted({word.lower() for word in "".join(map(Path.read_text, SAMPLE_DOCUMENTS.glob("*.md"))).split()})[-60:]
    index = [f"{word} . . . . . . {number % 9 + 1}{', 9' if number % 5 else ''}" for number, word in enumerate(words)]
    text = "Adults pay.\nDogs are free."
    listed = "\n".join([text, *index[:30], "W", *index[30:]])
    assert drop_contents(listed, 9) == text
    assert drop_contents(listed, 8) == listed == drop_contents(listed)
    scores = "\n".join(reversed(index))
    assert drop_contents(scores, 9) == scores
    entries = [f"{number} Fares . . . . . . {number}" for number in range(1, 6)]
    contents = [entries[0], "2 What to do with the oars of a boat that is", "full? . . . . . . 2", *entries[2:]]
    figures = "\n".join(f"{number}. A boat . . . . . . {number + 3}" for number in range(20))
    assert drop_contents(f"{figures}\n{text}", 22) == text and figures in drop_contents(f"{figures}\n{text}", 21)
    headings = "\n".join(entry.replace(" . . . . . .", "")[:-2] for entry in entries)
    assert drop_contents("\n".join([*contents, headings])) == headings


def test_a_text_of_one_line_takes_time_by_its_length() -> None:
    text = "The ferry leaves at nine. " * 10_000 + "\nEnd."
    assert mark_headings(text) == text


def test_a_text_without_stops_such_as_a_transcript_takes_time_by_its_length() -> None:
    text = textwrap.fill("so we went down to the river and took the boat " * 5000, 78)
    started = time.process_time()
    assert "\n" not in join_lines(text)
    assert time.process_time() - started < 2


def test_wrapped_lines_of_scripts_without_spaces_are_joined_at_any_letter() -> None:
    sentence = "渡し船は毎朝七時に港を出て、島をひと回りしてから昼前に戻ってくるので、朝の買い物に間に合う。"
    verse = "古池や\n蛙飛び込む\n水の音"
    letters = sentence * 6
    printed = "\n".join(letters[start : start + 35] for start in range(0, len(letters), 35))
    text = f"渡し船の時刻\n{printed}\n\n・犬は無料\n・自転車は三百円\n\n{verse}"
    assert join_lines(text) == text.replace(printed, letters)
    mixed = "我们使用 Debian 系统，因为它可以在任何机器上运行，并且所有的软件都是自由的，比如\n" * 3
    assert "比如 Emacs 编辑器" in join_lines(mixed + "Emacs 编辑器。")
