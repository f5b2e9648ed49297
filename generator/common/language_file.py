"""Read a language file: the words, patterns and phrases of a language, which rules look up by name.

`languages/<ISO 639 code>.yaml` is one: a language more is a file more (`docs/languages.md`).
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from generator.common.scripts import SCRIPTS, find_runs, words
from generator.schema import Record

WordList = Literal[
    "stop",  # of no use in a search
    "little",  # beside those, say nothing that a source could support
    "proper",  # of those, what is a name with a capital (May)
    "function",  # change no question's meaning
    "telltale",  # one of them is in nearly every text of the language, and in no other language
    "question",
    "auxiliary",  # a question or an order begins with one
    "pointing",  # refers to what was said
    "light",  # carries neither a subject nor a reference to one
    "leading",  # stands before a question
    "alternative",  # asks for something else than to confirm
    "anywhere",  # tells no two topics apart
    "first_person",
    "we",  # of those, what an office, shop or firm calls itself
    "address",  # speaks to the user, as no passage does; and parts of short forms (you'd, aren't)
    "courtesy",
    "preposition",
    "clause",  # a clause that depends on another begins with one
    "weekday",  # another one makes an answer wrong
    "joining",  # parts what a sentence says of several things
    "sweeping",  # makes of some all, of sometimes always
    "absent",  # says of something that it isn't there, without a “not”
    "affirms",  # begins an answer that says “yes”
    "denies",  # begins one that says “no”
]
PatternName = Literal[
    "no_end",  # a full stop that ends no sentence, up to where the next one would begin
    "end",  # a word that sentencex takes for an abbreviation, where it ends a sentence, up to the next one
    "condition",  # of a clause, what says nothing of what is known (“if it isn't specified”)
    "refusal",  # a clause that says that something isn't known
    "referral",  # sends the user elsewhere, which beside a refusal claims nothing
    "cross_reference",  # a sentence that only points to another place
    "closing",  # a sentence of courtesy around an answer, which claims nothing
    "filler",  # words of an answer that tell nothing, though they look so
    "disclaimer",  # says before an answer that a machine gives it
    "asks_agent",  # asks what the agent did, as one asks a person
    "offers_help",  # as an agent does, and no user
    "several",  # says that there are several, which beside a question back claims nothing
    "concession",  # a clause before a claim, whose first group is kept
    "clause",  # what parts clauses
    "unknown_claim",  # of an answer, what says that it isn't known
    "declines",
    "doubts_sense",
    "corrects",
    "scaffolding",  # speaks of documents, which no user sees
    "speaks_of_documents",  # beside that, as only an agent does
    "unfinished",  # ends in the middle of a sentence
    "announcement",  # announces or offers an answer
    "open_question",  # can't be answered by a part of itself
    "asks_number",
    "asks_duration",
    "duration",
    "asks_year",
    "year",
    "date",  # with a year that counts nothing
    "asks_reason",
    "asks_difference",
    "alike",  # says what two have in common, and no more
    "negation",  # what stands behind it is denied
    "exception",  # what stands behind it isn't
    "limit",  # with groups: what follows is the least or most, or comes after or before; what went, with “_behind”
    "amount",  # of one, a half or a quarter of a unit, which is the group of that name
    "and_half",  # behind a number
    "three_quarters",  # 0.75, in words
    "about",  # before a number, says that it is rounded
    "hour",  # behind a number that may be a full hour and counts nothing (9 daily)
    "spoken_time",  # with the hour as one of the groups sharp, past, half and to
    "comparison",  # with the word by which two things are compared as its first group
    "percent",  # in two words
    "quantity",  # beside numbers in words
    "opener",  # what may stand before the same question
    "corrects_question",
    "clarifies",
    "rejects",  # its first group isn't what was meant
    "request",
    "order",  # begins as an order to tell or show does
    "points",  # at what was talked about before
    "points_at_person",
    "asks_of_it",  # begins with what it asks of “it”
    "refers",  # can't be understood without what was said
    "refers_within",  # unless the text up to there ends with a pronoun for what it names itself
    "sort",  # before the sort of a thing, in place of its name (“this library”)
    "bare",  # a pronoun for a thing
    "plural",  # a noun of several
    "person",  # a noun that may be a person
    "participle",  # behind “is” or “has”
    "particle",  # of a verb, between which and the verb a pronoun stands (“set it up”)
    "parted",  # the first part of a verb at the end of its clause (German “holen … ab”, of “abholen”)
    "unowned",  # a noun before “of” that belongs to nothing (“the city of Lima”)
    "place",  # is or tells of a place
    "asks_back",  # with a question mark
    "asks_to_tell",  # without one
    "offers",  # asks nothing back, though it looks so
    "whether",
    "asks_twice",  # may ask for two things
    "asks_how",  # may ask how to do something, if it asks
    "asks_view",  # may ask what to think of something, if it asks
    "modality",  # asks for more than words
    "harm",
]
SPLIT = BeforeValidator(lambda value: value.split() if isinstance(value, str) else value)
_ARABIC_ARTICLE, _ARABIC_PARTICLE = re.compile(r"^[وف]?[بك]?ال(?=\w{3})"), re.compile(r"^[بوف](?=\w{2})")
JOINED = BeforeValidator(lambda value: "|".join(value) if isinstance(value, list) else value)


class Language(Record):
    """A language. Error messages show a field's description."""

    code: str = Field(description="ISO 639 code, which names the file")
    name: str = Field(description="English name, for prompts and reports")
    scripts: tuple[str, ...] = Field(default=(), description="scripts that it is written in, such as [Latin]")
    stemmer: str | None = Field(default=None, description="name of its Snowball stemmer (PyStemmer); null: none")
    ngrams: tuple[Annotated[int, Field(ge=1, le=6)], ...] = Field(
        default=(), description="lengths of the letter n-grams that stand for words, if it writes no spaces; else []"
    )
    elasticsearch: str = Field(default="standard", description="name of its analyzer in Elasticsearch")
    capitals: bool = Field(default=True, description="whether a capital inside a sentence shows a name")
    compounds: bool = Field(default=False, description="whether words are joined to one (Jahr, Ausweis: Jahresausweis)")
    unknown: str = Field(default="", description="how an answer begins that says that it isn't known")
    numbers: dict[str, Annotated[str, Field(pattern=r"^\d+(?:\.\d+)?\.?$")]] = Field(
        default={},
        description="numbers in words (an ordinal with a full stop: 2.) with their digits, if text2num has none",
    )
    months: Annotated[tuple[str, ...], SPLIT] = Field(
        default=(), description="the names of the twelve months, as dates have them; else dates in digits stay so"
    )
    same: tuple[Annotated[frozenset[str], SPLIT], ...] = Field(
        default=(),
        description="what says the same: words, signs, numbers (percent %); with a capital only so (sunday Sun)",
    )
    measures: tuple[dict[str, int], ...] = Field(
        default=(), description="of units of one kind, each a word of `same`, how many of the smallest (hour: 3600)"
    )
    opposites: tuple[tuple[Annotated[frozenset[str], SPLIT], Annotated[frozenset[str], SPLIT]], ...] = Field(
        default=(), description="pairs of lists of words, one the contrary of the other (open, closed)"
    )
    spelling: dict[str, str] = Field(
        default={},
        description="other spellings or ends of stems: a regular expression, and its replacement (our: or)",
    )
    words: dict[WordList, Annotated[tuple[str, ...], SPLIT]] = Field(default={}, description="lists of words")
    parts: dict[str, Annotated[str, JOINED]] = Field(
        default={}, description="parts of patterns, which these name as <part>; a list means any of them"
    )
    patterns: dict[PatternName, Annotated[str, JOINED]] = Field(
        default={}, description="regular expressions, upper or lower case; a list means any of them"
    )
    phrasings: dict[str, tuple[str, ...]] = Field(
        default={}, description="beginnings of questions, by question type, as in taxonomy/questions"
    )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without what was compiled of it."""
        return Language.model_validate, (self.model_dump(),)

    def __hash__(self) -> int:
        return hash(self.code)

    @field_validator("stemmer")
    @classmethod
    def _check_stemmer(cls, value: str | None) -> str | None:
        import Stemmer

        if value is not None and value not in Stemmer.algorithms():
            raise ValueError(f"there is none for {value}")
        return value

    @field_validator("scripts")
    @classmethod
    def _check_scripts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in value if name not in SCRIPTS]:
            raise ValueError(f"unknown script {unknown[0]}; choose from {', '.join(SCRIPTS)}, and leave out others")
        return value

    @field_validator("months")
    @classmethod
    def _check_months(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) not in (0, 12):
            raise ValueError(f"has {len(value)} names, not 12")
        return value

    @field_validator("patterns")
    @classmethod
    def _check_patterns(cls, value: dict[str, str], info: Any) -> dict[str, str]:
        # Ours are known to be right, and it would take a twentieth of a second of each command.
        for name, pattern in value.items() if info.context else ():
            try:
                re.compile(_expand(pattern, info.data.get("parts", {})), re.IGNORECASE)
            except re.error as error:
                raise ValueError(f"{name}: {error}") from None
        return value

    @property
    def is_unknown(self) -> bool:
        """True if there is no file of it."""
        return self.model_fields_set <= {"code", "name"}

    @cached_property
    def idle(self) -> frozenset[str]:
        """The words that say nothing which a source could support."""
        return self.listed("stop") | self.listed("little")

    @cached_property
    def commonest(self) -> frozenset[str]:
        """The words that its texts have most of."""
        lists: tuple[WordList, ...] = ("function", "question", "auxiliary")
        return self.idle.union(*map(self.listed, lists))

    @cached_property
    def units(self) -> frozenset[str]:
        """The words of `same`: units, days and the like."""
        return frozenset(word.casefold() for group in self.same for word in group)

    @property
    def spaced(self) -> bool:
        """True if spaces part its words."""
        return not self.ngrams

    @cached_property
    def _lists(self) -> Mapping[str, frozenset[str]]:
        return {name: frozenset(word.casefold() for word in listed) for name, listed in self.words.items()}

    @cached_property
    def _compiled(self) -> dict[tuple[PatternName, bool], re.Pattern[str] | None]:
        """The patterns asked for so far; those for texts of ASCII find the same there in two thirds of the time."""
        return {}

    def listed(self, name: WordList) -> frozenset[str]:
        """Return a list of words, in lower case; empty if the language has no such list."""
        return self._lists.get(name, frozenset())

    def pattern(self, name: PatternName, text: str | None = None) -> re.Pattern[str] | None:
        """Return a pattern, compiled; None if the language has no such pattern.

        Args:
            text: the only one that it will be searched in; if it is ASCII, the search takes two thirds of the time.
        """
        if (key := (name, text is not None and text.isascii())) not in self._compiled:
            pattern, flags = self.patterns.get(name), re.IGNORECASE | re.ASCII if key[1] else re.IGNORECASE
            self._compiled[key] = None if pattern is None else re.compile(_expand(pattern, self.parts), flags)
        return self._compiled[key]

    def matches(self, name: PatternName, text: str) -> bool:
        """Return True if a pattern is found in a text; False if the language has no such pattern."""
        pattern = self.pattern(name, text)
        return pattern is not None and pattern.search(text) is not None

    def find(self, name: WordList, text: str) -> frozenset[str]:
        """Return the words of a list that a text has."""
        listed = self.listed(name)
        return listed.intersection(words(text)) if self.spaced else frozenset(word for word in listed if word in text)

    def begins_with(self, name: WordList, text: str) -> bool:
        """Return True if the first word of a text is in a list."""
        listed = self.listed(name)
        return not listed.isdisjoint(words(text)[:1]) if self.spaced else text.startswith(tuple(listed))

    def is_in(self, text: str) -> bool:
        """Return True if a text has one of the language's commonest words, so that its other lists apply to it."""
        telltale = self.listed("telltale")
        return not telltale or not telltale.isdisjoint(words(text))

    def stem(self, tokens: list[str]) -> list[str]:
        """Return the stem of each word, which is in lower case; the words themselves if there is no stemmer."""
        if self.code == "ar":  # whose stemmer keeps the article behind “and”
            tokens = [_ARABIC_ARTICLE.sub("", token) for token in tokens]
        stems: list[str] = tokens if self._stemmer is None else self._stemmer.stemWords(tokens)
        if self.code == "ar":  # and takes the first letter of some nouns (“فندق”, hotel) for “and”, “then” or “by”
            stems = [_ARABIC_PARTICLE.sub("", stem) for stem in stems]
        # The small letter of Turkish “I” is “ı”, which case-folding doesn't know.
        return [stem.replace("ı", "i") for stem in stems] if self.code == "tr" else stems

    @cached_property
    def _stemmer(self) -> Any:
        import Stemmer

        return None if self.stemmer is None else Stemmer.Stemmer(self.stemmer)

    def cut(self, text: str) -> Iterator[str]:
        """Yield the n-grams of a text's letters; words of Latin letters and digits are left whole."""
        for word, run in find_runs(text):
            if word:
                yield word
            for length in self.ngrams if run else ():
                yield from _ngrams(run, length)
            if 0 < len(run) < min(self.ngrams):
                yield run

    def cut_content(self, text: str) -> Iterator[str]:
        """Yield the longest n-grams that cross none of the `function` words, in their order; shorter runs are whole."""
        length = max(self.ngrams)
        for word, run in find_runs(text):
            if word:
                yield word
            for piece in self._function.split(run) if self._function else [run]:
                yield from _ngrams(piece, min(length, len(piece))) if piece else ()

    @cached_property
    def _function(self) -> re.Pattern[str] | None:
        listed = sorted(self.listed("function"), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, listed))) if listed else None


def _ngrams(run: str, length: int) -> Iterator[str]:
    return (run[place : place + length] for place in range(len(run) - length + 1))


def _expand(pattern: str, parts: Mapping[str, str]) -> str:
    """Return a pattern with its parts put in, and the parts of these."""
    for _ in parts:
        pattern = re.sub(r"<(\w+)>", lambda found: parts.get(found[1], found[0]), pattern)
    return pattern
