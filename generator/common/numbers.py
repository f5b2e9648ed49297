"""Write numbers, times and dates in one form, by which equal ones are known, and list the other forms of one."""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from generator.common.language import cached_by_language, dialog_language
from generator.common.numerals import digits_of, find_numerals
from generator.common.scripts import UNSPACED

_CLOCK = r"(?:[01]?\d|2[0-4]):[0-5]\d(?![:\d])"  # 9:30, one number
# A number, and letters that follow it (`1980s`, `20th`, `500Mbps`); a name such as `B12` is a word.
NUMBER = re.compile(rf"(?<![^\W{UNSPACED}])(?:(?<!:){_CLOCK}|\d+(?:[.,]\d+)*)(?=[^\W\d_]{{0,4}}\b|[{UNSPACED}])")
# The number of a list's item: “1. ” at the start of a line, “1) ” and “(1) ” anywhere; and what may be one elsewhere.
_ITEM = re.compile(r"^\s*\d{1,2}[.)](?=\s)|(?<!\S)\(?\d{1,2}\)(?=\s)", re.MULTILINE)
_INNER_ITEM = re.compile(r"(?<![^\s*_])(step )?(\d{1,2})(?(1)[.:]|\.)(?=[\s*_])", re.IGNORECASE)  # “**Step 1:** Ask”
_FRACTION = re.compile(r"(?:(?<![\d.,/])(\d{1,4})[ ]?)?(?:([½¼¾⅛⅜⅝⅞⅕⅖⅗⅘])|(?<![\d/])\b([1357])/([248])\b(?![/\d]))")
_DIGIT = re.compile("[0-9]")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")  # “٧:١٥” is 7:15, too
_MAYBE_FRACTION = re.compile(r"[½¼¾⅛⅜⅝⅞⅕⅖⅗⅘/](?<!\D/)")  # much faster
# “$11k”, “3.5M”, “€2bn”, “1.200 Mio.”, “5.93 mln”
_SCALED = re.compile(
    r"(?<![\d.,])(\d+(?:[.,]\d{3})*(?:[.,]\d{1,2})?)(?:(M|bn| ?(?:[mM](?:io|rd)|[mb]ln))| ?([kKmMbB]|bn))\b"
)
_VERSION = re.compile(r"\b[vV](?=\d+\.\d)")  # “v3.1.2” is 3.1.2
_ISO_DATE = re.compile(r"\b(?P<year>[12]\d{3})-(?P<month>[01]?\d)-(?P<day>[0-3]?\d)\b")
_DATE = re.compile(r"\b(?P<day>[0-3]?\d)(?P<sign>[./])(?P<month>[0-3]?\d)(?P=sign)(?P<year>[12]\d{3})\b")
_YEARS = re.compile(r"\b(1[5-9]|20)(\d\d)( ?(?:-{1,2}|–) ?)(\d\d)\b(?![-./]\d)")
_DOTTED = re.compile(r"\.(?<=\b[apAP]\.)\s?([mM])\b(?:\.(?!\s+[A-Z]))?")  # not the end of a sentence
_TIME = re.compile(
    r"\b([01]?\d|2[0-4])(?: ?h ?| heures? | uhr | giờ |[.](?=[0-5]\d ?(?:[ap]m|u[hu]r|h)\b))"
    r"([0-5]\d)(?:\b(?! min)|(?=[ap]m\b))( ?h\b)?",
    re.IGNORECASE,
)
# “from 9.30 to 17.00”, “at 9.30”: where English has a time with a point, and no decimal.
_POINTED = r"(?:[01]?\d|2[0-4])\.[0-5]\d(?!\d|[.,]\d|%)"
_BEFORE_TIME = "".join(rf"|(?<=\b(?i:{word}) )" for word in "at from to until till by before after".split())
_POINTED_TIME = re.compile(
    rf"(?:(?<=\d[-–])|(?<=\d [-–] ){_BEFORE_TIME}){_POINTED}|(?<![\d.,$€£]){_POINTED}(?= ?(?:[-–]|to|until|till) ?\d)"
)
_MAYBE_TIME = re.compile(r"\d\.[0-5]\d")
# In German “am” is a word: “die 3 am stärksten betroffenen Bezirke”.
_FULL_HOUR, _FULL_HOUR_DE = (
    re.compile(rf"(?<![\d.,:])(\d{{1,2}})(?= ?(?:{half}|uhr)\b)", re.IGNORECASE) for half in ("[ap]m", "pm")
)
_MINUTES = {"sharp": "00", "past": "15", "half": "30", "to": "45"}
_TOKENIZED = re.compile(r"\b(\d{1,3}) , (?=\d{3}\b)")  # “45 , 700”, in published sets
_SWISS_THOUSANDS = re.compile(r"(?<=\d)['’](?=\d{3}(?!\d))")  # 1’250
_SPACED_THOUSANDS = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")
_MIDDLE_POINT, _LEADING_POINT = re.compile(r"·(?<=\d·)(?=\d)"), re.compile(r"\.(?<![\w.,]\.)(?=\d)")  # 88·7, P = .02
# “25.7 (25.5-26.0) million”
_MAYBE_SCALE = re.compile(r"(?<=\d)( [(\[](?:[^()\[\]]|\([^()]{0,40}\)){1,80}[)\]])( [^\W\d_]+)")
# One number, and no date or list.
WITH_POINT = re.compile(r"\d+[.:]\d+|\d+,\d{1,3}|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?")
THOUSANDS = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")
# “14 786” and “384 407.6”: one number, or two where English has them beside each other.
SPACED = re.compile(r"(?<![\d.,:])(?<!\d )\d{1,3}(?: \d{3})+(?:\.\d+)?(?![\d.,]?\d)")
SCALE = re.compile("10{2,}")
# The digits of numbers that may be said in round figures: years and prices have fewer, and what has more is no number.
_FEWEST_DIGITS, _MOST_DIGITS = 5, 18


@lru_cache(64)  # each reader of an answer asks
def has_digits(text: str) -> bool:
    """Return True if a text has a digit, the Arabic and other ones left out."""
    return _DIGIT.search(text) is not None


@cached_by_language(64)  # those of one answer
def write_plainly(text: str) -> str:
    """Return a text with numbers in one form.

    `9:30 am` for "9.30 a.m.", `9:30` for "9 h 30", "٩:٣٠", "half past nine" and "halb zehn", `9:00` for "nine o'clock",
    `8:45` for "a quarter to nine", `2.5` for "2½" and "2 1/2", `0.75` for "three quarters of", `11000` for "$11k",
    `3.1.2` for "v3.1.2", `1863-1869` for "1863-69", and `30 June 2024` for "2024-06-30" if it is clear which number is
    the month.
    """
    if _MAYBE_FRACTION.search(text):
        text = _FRACTION.sub(_write_fraction, text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u066b", ".").replace("\u066c", ",")  # the Arabic signs
        text = _OTHER_DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0])), _MIDDLE_POINT.sub(".", text))
    if percent := dialog_language().pattern("percent"):
        text = percent.sub("%", text)  # “cent” is a number
    if quarters := dialog_language().pattern("three_quarters", text):
        text = quarters.sub("0.75", text)
    if spoken := dialog_language().pattern("spoken_time", text):
        text = spoken.sub(_write_time, text)
    if not has_digits(text):
        return text
    text = _VERSION.sub("", text)
    text = _LEADING_POINT.sub("0.", _SWISS_THOUSANDS.sub("", _TOKENIZED.sub(r"\1,", text)))
    text = _MAYBE_SCALE.sub(_move_scale, text) if " (" in text or " [" in text else text
    if half := dialog_language().pattern("and_half"):  # “2 hours and a half”, too
        text = re.sub(rf"(\d)( \w+)??{half.pattern}", r"\1.5\2", text, flags=re.IGNORECASE)
    text = _SCALED.sub(_write_scaled, _ISO_DATE.sub(_write_date, _DATE.sub(_write_date, text)))
    text = _YEARS.sub(_write_years, text)
    code = dialog_language().code
    full_hour = _FULL_HOUR_DE if code == "de" else _FULL_HOUR
    text = full_hour.sub(r"\1:00", _TIME.sub(r"\1:\2\3", _DOTTED.sub(r"\1", text)))
    # English seldom parts thousands by spaces, and has numbers beside each other (“in 2020 500 people”).
    return text if code == "en" else _SPACED_THOUSANDS.sub("", text)


def _write_time(found: re.Match[str]) -> str:
    groups, language = found.groupdict(), dialog_language()
    evening = bool(groups.pop("late", None))
    part, said = next((name, hour) for name, hour in groups.items() if hour)
    numeral = next(find_numerals(said.casefold().split()), None)
    # Lists have the ordinals that tell an hour (“půl deváté”), text2num has any.
    told = numeral.digits if numeral and (language.numbers or not numeral.ordinal) else said
    hour, _, minutes = told.partition(":")
    if not hour.isdigit() or int(hour) > 24 or (minutes and part != "sharp"):
        return found.group()
    before = part == "to" or (part == "half" and language.code in ("cs", "de", "nl", "ru"))  # “halb neun” is 8:30
    late = 12 * (evening and int(hour) < 12)
    return f"{int(hour) - before + late or 12}:{minutes or _MINUTES[part]}"


def _write_fraction(found: re.Match[str]) -> str:
    whole, sign, top, bottom = found.groups()
    part = Fraction(unicodedata.numeric(sign)).limit_denominator(10) if sign else Fraction(int(top), int(bottom))
    return f"{int(whole or 0) + float(part):g}"


def _write_scaled(found: re.Match[str]) -> str:
    number, alone, letters = found.groups()
    if not alone and not re.search("[$€£] ?$", found.string[max(0, found.start() - 2) : found.start()]):
        return found.group()
    unit = (alone or letters).strip().casefold()
    scale = 9 if unit == "mrd" else {"k": 3, "m": 6, "b": 9}[unit[0]]
    return f"{Decimal(write_digits(number)).scaleb(scale):f}"


def _move_scale(found: re.Match[str]) -> str:
    between, word = found.groups()
    _, digits = next(digits_of([word.strip().casefold()]), ("", ""))
    return word + between if SCALE.fullmatch(digits) else found.group()


def _write_date(found: re.Match[str]) -> str:
    parts, language = found.groupdict(), dialog_language()
    day, month = int(parts["day"]), int(parts["month"])
    if parts.get("sign") == "/" and language.code == "en":
        day, month = (month, day) if day <= 12 else (day, month)
        month = 0 if day <= 12 else month  # the fifth of June, or the sixth of May
    known = language.months and 1 <= month <= 12
    return f"{day} {language.months[month - 1]} {parts['year']}" if known else found.group()


def _write_years(found: re.Match[str]) -> str:
    century, first, sign, last = found.groups()
    return f"{century}{first}{sign}{century}{last}" if last > first else found.group()


def drop_item_numbers(text: str) -> str:
    """Return a text without the numbers of a list's items; those inside a line count from 1 on (“: 1. Ask 2. Pay”)."""
    if text.isascii() and not has_digits(text):
        return text
    items = list[re.Match[str]]()
    for match in _INNER_ITEM.finditer(text):
        if int(match[2]) == len(items) + 1:
            items.append(match)
    for item in reversed(items if len(items) > 1 else []):
        text = f"{text[: item.start()]} {text[item.end() :]}"
    return _ITEM.sub(" ", text)


def list_pointed_times(text: str) -> list[str]:
    """Return the times of an English text that are written with a point."""
    return _POINTED_TIME.findall(text) if _MAYBE_TIME.search(text) else []


def other_times(time: str, half: str) -> Iterator[str]:
    """Yield a time's other forms: `5:30` and `pm` for "17:30"; `17:00`, `17`, `5` and `pm` for "5:00" and "pm"."""
    hour, minutes = time.split(":")
    late = int(hour) % 12 + 12 * (half == "pm") if half in ("am", "pm") else int(hour)
    for each in {int(hour), late, (late - 1) % 12 + 1}:
        yield from (f"{each}:{minutes}", str(each))[: 1 + (minutes == "00")]
    if late >= 12:
        yield "pm"


def round_off(number: str) -> Iterator[str]:
    """Yield a large number in one to three figures, rounded and cut off, as one says it."""
    whole = number.partition(".")[0]
    if whole.isdigit() and _FEWEST_DIGITS <= len(whole) <= _MOST_DIGITS:
        for unit in (10 ** (len(whole) - figures) for figures in (1, 2, 3)):
            yield from (str((int(whole) + more) // unit * unit) for more in (0, unit // 2))


def write_digits(number: str) -> str:
    """Return a number as `1200`, `2.5` or `9:30`, whatever its signs and zeros are."""
    if ":" in number:
        return number.lstrip("0").rjust(4, "0")
    whole, point, fraction = THOUSANDS.sub("", number).replace(",", ".").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")
