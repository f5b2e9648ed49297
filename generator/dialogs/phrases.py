"""Find the phrases of a question that the last turn named, in English: “the Roman Empire”, “India's”."""

import re

from generator.common.language import dialog_language
from generator.dialogs.checks.later_turns import content_of

GENITIVE = re.compile(r"(?:['’]s|(?<=s)['’])$")
ARTICLES = {"a", "an", "the"}
_WORD = re.compile(r"[\w-]+(?:['’]\w+|(?<=s)['’](?!\w))?")
_ENDING = re.compile(rf"{GENITIVE.pattern}|(?<=[sde])n['’]t$")
_BE, HAVE = {"is", "are", "was", "were"}, {"has", "have", "had"}
_ADVERBS = set("not ever also still really actually usually normally first".split())
_QUANTIFIERS = {"each", "every", "some", "any"}
_VERBS = {"be", "do", "have", "happen", "last", "mean"}  # that carry no content
_BEFORE_BARE = set("of about against during with without like".split())  # a noun behind others may be none: “in person”
_JOINS = set("and as between like or than".split())
_NOT_BEFORE = ARTICLES | _JOINS | {"all", "both", "such"}
# Behind a noun, these go on with it (“the water that …”), or it was none (“How do I open a …”).
_GOES_ON = _JOINS | set(
    "behind of that where which who whose why i you we they he she it a an the my your our his its their".split()
)
_NOT_IN_NAME = set("i you we he she it they them this that these those which who what than how where why".split())
# A time, what nobody names (“the longest in the world”), or what ends with an adverb.
_NO_NAME = re.compile(
    r"^the (?:beginning|end|future|internet|past|present|public|rest|same|world)$|"
    r"^\W*[\d\W]+s?$|\b(?:centur(?:y|ies)|decades?|years?|months?|weeks?|days?|seasons?|[a-z]+(?:al|ed|ful|ive|nt|ous|te)ly)$"
)


def find_named(question: str, told: str) -> list[tuple[int, int]]:
    """Return the spans of phrases of a question that were just told and aren't all of its content, the longest first.

    A phrase begins with an article or behind a function word, and not within a name (“Bank of China”). It ends with the
    question, with a genitive (“the tower's height”), before a function word that doesn't continue it, or before the
    verb (“When did the Roman Empire end?”) if it was told as a whole.
    """
    words, source = Words(question), Words(told)
    known = f" {' '.join(source.spoken)} "
    count = len(words.spoken)
    places = ((first, last) for first in range(1, count) for last in range(first + 1, count + 1))
    found = [
        (words.said[first].start(), words.said[last - 1].end())
        for first, last in places
        if words.begins(first) and words.ends(first, last, source) and words.names(first, last, known)
    ]
    return sorted(found, key=lambda place: place[0] - place[1])


class Words:
    """The words of a text. A phrase is those from `first` up to `last`, as in a slice."""

    def __init__(self, text: str) -> None:
        self.language = language = dialog_language()
        self.text, self.said, self.spoken = text, list(_WORD.finditer(text)), spoken(text)
        self.clause, self.auxiliary = language.listed("clause"), language.listed("auxiliary") - {"won"}  # of “won't”
        self.leads = language.listed("preposition") | self.clause
        empty = self.leads | _ADVERBS | _QUANTIFIERS
        self.tells = [word not in empty and bool(content_of(word)) for word in self.spoken]

    @property
    def head(self) -> str:
        """Return the noun of a phrase: “the limit on roads”, “the album Red Letters”."""

        def is_behind(place: int) -> bool:
            names = self.tells[place - 1] and self.said[place - 1][0].islower() and self.is_capital(place)
            return names or self.spoken[place] in self.leads

        end = next((place for place in range(1, len(self.said)) if is_behind(place)), len(self.said))
        return self.said[end - 1][0] if end else ""

    def word(self, place: int) -> str:
        """Return a word of the same clause as the one before; “” if there is none."""
        if not 0 < place < len(self.said):
            return ""
        between = self.text[self.said[place - 1].end() : self.said[place].start()]
        return self.spoken[place] if between.isspace() else ""

    def is_capital(self, place: int) -> bool:
        return self.said[place][0][0].isupper()

    def is_participle(self, word: str) -> bool:
        return self.language.matches("participle", word)

    def begins(self, first: int) -> bool:
        """Return true if a phrase may begin there."""
        before, begun, capital = self.spoken[first - 1], self.said[first][0], self.is_capital(first)
        if not re.search(r"[\w,’'] $", self.text[: self.said[first].start()]) or before in _NOT_BEFORE:
            return False
        if before in ("be", "been", "being") or (before in HAVE and begun in ("a", "an")):  # “had a cold”
            return False
        # “Bank of China”, “Kermit the Frog”, “Dancing with the Stars”
        of, joined = before == "of", before in self.leads
        article = begun in ARTICLES and not joined
        titled = begun in ARTICLES and first + 1 < len(self.said) and self.is_capital(first + 1)
        if first > 1 + joined and (of or capital or article or titled) and self.is_capital(first - 1 - joined):
            return False
        if begun in ARTICLES:
            return True
        asked = capital and self.spoken[first - 2 : first - 1] in (["who"], ["what"])  # “Who founded …”
        leads = before in self.leads | self.auxiliary and (before != "to" or capital)
        return self.tells[first] and (asked or leads)

    def ends(self, first: int, last: int, told: "Words") -> bool:
        """Return true if a phrase may end there, which depends on the word that it is behind."""
        before, end, follows = self.spoken[first - 1], self.said[last - 1], self.word(last)
        rest = self.text[end.end() :]
        initial = len(end[0]) < 4 and re.match(r"\. [A-Z]", rest)
        # A title in quotes, a name or a list may go on with it.
        goes_on = initial or not re.match(r"[?.!,;]*(?!\S| [\"“‘'(])", rest) or re.match(r",? [A-Z]|, \d| &", rest)
        if goes_on or not self.tells[last - 1]:
            return False
        if GENITIVE.search(end[0]):
            return True
        if before in _BE:
            return self._precedes_predicate(first, last) and (not follows or self._is_alone(first, last, told))
        if before in self.auxiliary - HAVE or (before in HAVE and follows and self.tells[last]):
            base = before not in HAVE
            is_noun = base and re.search(r"[^su]s$", follows)  # “the comic series”
            return not is_noun and self._precedes_verb(last, base) and self._is_alone(first, last, told)
        if before in self.clause and follows not in self.auxiliary:  # “if the pump fails”
            return follows.endswith("s") and self._precedes_verb(last, base=True) and self._is_alone(first, last, told)
        return not follows or before in self.clause or not (self.tells[last] or follows in _GOES_ON)

    def _precedes_verb(self, last: int, base: bool) -> bool:
        """Return true if one word of content follows that may be a verb, and no noun (“the pump | seal in …”)."""
        last += self.word(last) in _ADVERBS
        follows, behind = self.word(last), self.word(last + 1)
        if base and follows in _VERBS:
            return True
        if not follows or not self.tells[last] or self.is_participle(follows) is base:
            return False
        noun = behind and self.tells[last + 1] and not self.is_capital(last + 1)
        return not (noun or behind in self.auxiliary or (base and behind == "of"))

    def _precedes_predicate(self, first: int, last: int) -> bool:
        """Return true if what follows is said of the phrase, and the phrase not of what is before “is”."""
        if self._precedes_verb(last, base=False):
            return True
        follows, asked = self.word(last), self.spoken[max(0, first - 3) : first - 1]
        # “Is the tent waterproof?”
        if not self.word(first - 1) and follows and (self.tells[last] or follows in ARTICLES):
            return follows in ARTICLES or self.word(last + 1) in ("", "for", "than", "to")
        if not asked or not (asked[-1] in ("where", "when", "why", "how") or asked[0] == "how"):  # “How tall is …”
            return False
        return not (follows and self.tells[last]) and follows not in _GOES_ON

    def names(self, first: int, last: int, known: str) -> bool:
        """Return true if a phrase is one, names no time, and was told."""
        before, inside = self.spoken[first - 1], self.spoken[first:last]
        phrase = self.text[self.said[first].start() : self.said[last - 1].end()]
        if re.search(r'[,;:()"“”?!]|[a-z]{3}\. ', phrase) or not (_NOT_IN_NAME | self.auxiliary).isdisjoint(inside):
            return False
        articles = (at for at in range(first + 1, last) if self.said[at][0] in ARTICLES)
        if any(self.spoken[at - 1] not in self.leads for at in articles) or _NO_NAME.search(phrase):
            return False
        article, follows = inside[0] in ARTICLES, self.word(last)
        if phrase.islower() and not article:
            several, leads = self.language.matches("plural", inside[-1]), self.auxiliary | _BEFORE_BARE
            goes_on = before in self.leads - {"of"} and follows in self.leads - self.clause  # “about taxes on …”
            if before in ("at", "on") or (len(inside) == 1 and (goes_on or not (several or before in leads))):
                return False
        name = " ".join(inside[article:])
        if follows in self.leads and f" {name} {follows} {self.word(last + 1)} " in known:
            return False  # a part of a longer one
        if before not in self.leads | self.auxiliary and f" {before} {' '.join(inside)} {follows} " in known:
            return False  # asked of another thing before, it may hold the verb: “What does hiring a bench cost at …”
        return f" {name} " in known and bool(content_of(self.text) - content_of(phrase))

    def _is_alone(self, first: int, last: int, told: "Words") -> bool:
        """Return true if nothing that was told makes a phrase longer (“cotton” – “cotton gin”)."""

        def is_verb(word: str) -> bool:  # “It opens”, “it opened”, “owls eat”
            return several or bool(re.search(r"[^s]s$", word)) or self.is_participle(word)

        name = self.spoken[first + (self.spoken[first] in ARTICLES) : last]
        several = self.language.matches("plural", name[-1])
        for start in range(len(told.spoken) - len(name) + 1):
            end = start + len(name)
            if told.spoken[start:end] != name:
                continue
            before = told.spoken[max(0, start - 1 - (told.spoken[start - 1] in ARTICLES))] if start else ""
            follows = told.word(end)
            if before in told.auxiliary - _BE - HAVE:  # “What does the display show?” has the verb
                if follows in _VERBS:
                    return True
            elif follows and follows == self.word(last) and not several:
                return False
            elif not (follows and told.tells[end]) or GENITIVE.search(told.said[end - 1][0]) or is_verb(follows):
                return True
        return False


def spoken(text: str) -> list[str]:
    """Return the words of a text in lower case, without the endings of a genitive and of “doesn't”."""
    return [_ENDING.sub("", word[0].lower()) for word in _WORD.finditer(text)]
