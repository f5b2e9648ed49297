"""The language that texts of a test are in."""

from contextlib import AbstractContextManager

from generator.common.language import Languages, load_language, use_languages


def speaking(code: str) -> AbstractContextManager[Languages]:
    """Read documents and dialogs in a language within the block."""
    language = load_language(code)
    return use_languages(Languages(language, language))
