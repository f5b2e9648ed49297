"""Compare numbers by their units: “75%” isn't “75 minutes”, two weeks are 14 days, and 10 euros may be computed."""

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import combinations_with_replacement

from generator.common.language import cached_by_language, dialog_language
from generator.common.numbers import other_times, write_plainly
from generator.common.scripts import MARKS
from generator.common.support import parse_text, term_keys

# What may be the unit of the number before it.
_BEHIND = re.compile(rf"[ -]?((?:[^\W\d_]|[{MARKS}])+[23]?|[^\w\s.,;:!?()])")
_SIGNED = re.compile(r"[^\W\d_]{1,3}[$£] ?$")  # “US$ 50”
_MINUS = re.compile(r"(?:(?<![\w.,)-])(?<!\d )[-−–]|\b(?:minus|moins|menos) )$")
_DECIMAL = re.compile(r"\d+(?:\.\d+)?")
_YEAR = re.compile(r"1\d{3}|20\d\d")
_MONTHS = 12  # of a year
_AMOUNTS = {"one": "1", "half": "0.5", "quarter": "0.25"}
_PARTS_OF_HUNDRED = {"50", "25"}
_MOST_ADDENDS = 6  # looked at for a sum
_LEAST_BARE = 10  # of a number without a unit: smaller ones are the difference of others by chance


def find_other_units(text: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the numbers with units of a text that the sources have with other units alone: “75%” beside “75 minutes”.

    A unit is a word or a sign of the language's list `same`, right before or behind digits. What sources have in words
    alone may be another: “half” supports “50%”, not “50 minutes” or “50 guests”, and “noon” no “12 minutes”.
    """
    found = [each for each in _read_units(text) if each[2] and (each[1] is not None or each[0] in _PARTS_OF_HUNDRED)]
    if not found:
        return ()
    units: dict[str, set[int | None]] = {}
    for source in sources:
        for number, unit, _ in _read_units(source):
            units.setdefault(number, set()).add(unit)
    places = _unit_places()
    in_words = {
        number
        for number, _, _ in found
        if number.isdecimal() and number in places and number not in units
        if any(number in term_keys(source) for source in sources)
    }
    counts_nothing = {places.get(unit) for unit in ("%", "am", "pm")}
    others = [
        (number, spelt)
        for number, unit, spelt in found
        if (number in in_words and unit not in counts_nothing)
        or (unit is not None and number in units and not units[number] & {unit, None})
    ]
    computed = find_sums(text, sources) if others else {}  # “18 percent and another 7, that is 25”, beside 25 euros
    return tuple(spelt for number, spelt in others if number not in computed)


def find_sums(text: str, sources: Sequence[str]) -> dict[str, str]:
    """Return the numbers of a text that may be computed, by their digits, as `10 euros = 95 - 85`.

    They are the difference of two numbers that the text and the sources have, one of them with that unit if there is
    one, the sum of two or three with a unit, a percentage of one, or its half where the sources say “half”. What the
    text doesn't name isn't computed from: of a middling model's wrong numbers 25 were such a sum by chance.
    """
    found = dict[str, str]()
    if not (numbers := _read_units(text)):  # most have none
        return found
    readings = [each for source in sources for each in _read_units(source) if _DECIMAL.fullmatch(each[0])]
    own, percent = {number for number, *_ in numbers}, _unit_places().get("%")
    percentages = own & {number for number, of, _ in readings if of == percent}
    if "50" not in {number for number, *_ in readings} and any("50" in term_keys(source) for source in sources):
        percentages.add("50")  # “half”
    amounts = own & {number for number, *_ in readings}
    for number, unit, spelt in numbers:
        told = {n for n, of, _ in readings if of == unit}
        if number in told or not _DECIMAL.fullmatch(number):
            continue
        value = Decimal(number)
        alike = amounts & told if unit is not None else amounts if value >= _LEAST_BARE else set[str]()
        if unit in _scales() and _scales()[unit][1] == _MONTHS:
            alike = alike.union(filter(_YEAR.fullmatch, amounts))  # “30 years later” of 1475 and 1505
        if derived := _derive(value, amounts, alike, alike if unit is not None else (), percentages):
            found[number] = f"{spelt} = {derived}"
    return found


def _derive(
    number: Decimal, amounts: Collection[str], alike: Collection[str], addends: Collection[str], percentages: set[str]
) -> str | None:
    """Return how a number is a difference, a sum or a percentage of amounts, with its unit in the sources."""
    wholes, parts = sorted(map(Decimal, alike)), sorted(map(Decimal, addends))[:_MOST_ADDENDS]
    sums = (each for size in (2, 3) for each in combinations_with_replacement(parts, size))
    pairs = [(one, other) for one in wholes for other in sorted(map(Decimal, amounts))]
    found = [f"{max(pair)} - {min(pair)}" for pair in pairs if abs(pair[0] - pair[1]) == number]
    found += [" + ".join(map(str, each)) for each in sums if sum(each) == number]
    found += [f"{p}% of {each}" for p in sorted(percentages) for each in wholes if Decimal(p) * each == 100 * number]
    return found[0] if found else None


@cached_by_language(64)
def _unit_places() -> dict[str, int]:
    return {word.casefold(): place for place, group in enumerate(dialog_language().same) for word in group}


def kind_of_unit(word: str) -> str | None:
    """Return what a unit measures, the same for minutes and hours; None for other words."""
    place = _unit_places().get(word.casefold())
    kind = _scales().get(place)
    return f"measures {kind[0]}" if kind else None if place is None else f"same {place}"


@cached_by_language(8192)
def _read_units(text: str) -> tuple[tuple[str, int | None, str], ...]:
    """Return the numbers of a text, the place of each one's unit in `same`, or None, and both as they are spelt."""
    places, (text, _, _, numbers) = _unit_places(), parse_text(text)
    found = list[tuple[str, int | None, str]]()
    for start, end, digits, ordinal in numbers:
        if ordinal or text[start:end].casefold() in dialog_language().idle:
            continue
        behind, before = _BEHIND.match(text, end), text[max(0, start - 2) : start].strip()
        sign = before[-1:]
        unit = places.get(sign) if not sign.isalnum() and sign not in "%°" else None
        if unit is not None:  # “$12 monthly”
            signed = _SIGNED.search(text, max(0, start - 5), start)
            unit = places.get(signed[0].rstrip().casefold(), unit) if signed else unit
            start = text.rindex(sign, 0, start)
        elif behind and (unit := places.get(behind[1].casefold())) is not None:
            end = behind.end()
        if unit is not None and unit == places.get("°") and (minus := _MINUS.search(text, 0, start)):
            start, unit = minus.start(), -1
        found.append((digits, unit, text[start:end]))
        if ":" in digits and unit is None:  # “17:30” isn't “5:30 am”
            found += ((time, places.get("pm"), "") for time in other_times(digits, "") if time != digits)
    return tuple(found)


def convert_units(text: str, sources: Sequence[str]) -> str:
    """Return a text with its measures as the sources have them, if these have the same: “14 days” for “two weeks”.

    So are numbers that it says to be rounded: “about 12.4%” for “about 12%”.
    """
    text = _write_exactly(text, sources)
    measures = [(reading, measure) for reading in _read_amounts(text) if (measure := _measure(reading))]
    if not measures:
        return text
    readings = [reading for source in sources for reading in _read_amounts(source)]
    told, pairs = {_measure(each): each[2] for each in readings if each[2]}, {each[:2] for each in readings}
    for (number, unit, spelt), measure in measures:
        if measure in told and (number, unit) not in pairs:
            text = write_plainly(text).replace(spelt, told[measure], 1)
    return text


def _write_exactly(text: str, sources: Sequence[str]) -> str:
    """Return a text with each number behind “about” and the like as a source has it that rounds to it."""
    about = dialog_language().pattern("about", text)
    if not about or not _read_units(text) or not about.search(text):
        return text
    plain = write_plainly(text)
    rounded = list(about.finditer(plain))
    told = [each for source in sources for each in _read_units(source) if _DECIMAL.fullmatch(each[0])]
    for number, unit, spelt in _read_units(text):
        found = next((each for each in rounded if spelt and plain.startswith(spelt, each.end())), None)
        alike = [each for each in told if each[1] == unit]
        if found and _DECIMAL.fullmatch(number) and number not in {each[0] for each in alike}:
            exact = (each[2] for each in alike if _rounds(Decimal(number), Decimal(each[0]), **found.groupdict()))
            if other := next(exact, None):
                text = write_plainly(text).replace(found[0] + spelt, found[0] + other)
    return text


def _rounds(rounded: Decimal, exact: Decimal, over: str | None = None, nearly: str | None = None) -> bool:
    """Return True if a number is another one in fewer figures, within a twentieth, and on the side that is said."""
    if (over and exact < rounded) or (nearly and exact > rounded):
        return False
    unit = Decimal(1).scaleb(int(rounded.normalize().as_tuple().exponent))
    return rounded > 0 and abs(exact - rounded) <= min(unit / 2, rounded / 20)


@cached_by_language(8192)
def _read_amounts(text: str) -> tuple[tuple[str, int | None, str], ...]:
    """Return the numbers of a text with their units, and the units of which there are one, a half or a quarter."""
    amount, places = dialog_language().pattern("amount", text), _unit_places()
    found = amount.finditer(text) if amount else ()
    return *_read_units(text), *(
        (_AMOUNTS[str(each.lastgroup)], places.get(each[each.lastgroup or 0].casefold()), each[0]) for each in found
    )


def _measure(reading: tuple[str, int | None, str]) -> tuple[int, Decimal] | None:
    """Return what a number with a unit measures: the place of its kind in `measures`, and how much in the smallest."""
    number, unit, spelt = reading
    kind = _scales().get(unit) if spelt and _DECIMAL.fullmatch(number) else None
    return kind and (kind[0], kind[1] * Decimal(number))


@cached_by_language(64)
def _scales() -> dict[int | None, tuple[int, Decimal]]:
    places, kinds = _unit_places(), enumerate(dialog_language().measures)
    return {places[of]: (kind, Decimal(size)) for kind, sizes in kinds for of, size in sizes.items() if of in places}
