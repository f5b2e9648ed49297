"""Find what a question asks for by its first words, a number or a time, and a text doesn't give."""

from generator.common.language import dialog_language
from generator.common.numerals import digits_of
from generator.common.scripts import words


def find_missing(text: str, question: str) -> str | None:
    """Return what to give that a question asks for and a text lacks, or None."""
    language = dialog_language()
    if language.matches("asks_number", question) and not gives_number(text):
        return "give the number"
    if language.matches("asks_duration", question) and not (language.matches("duration", text) or gives_number(text)):
        return "say how long"
    if language.matches("asks_year", question) and not language.matches("year", text):
        return "give the year"
    if language.matches("asks_difference", question) and language.matches("alike", text):
        return "say what differs"
    return None


def gives_number(text: str) -> bool:
    """Return True if a text has a quantity; that of “in 2005” is none."""
    date = dialog_language().pattern("date")
    rest = date.sub(" ", text) if date else text
    return dialog_language().matches("quantity", rest) or any(digits_of(words(rest)))
