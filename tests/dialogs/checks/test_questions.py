"""Checks of a question before it is answered."""

import pytest

from generator.common.language_file import PatternName
from generator.dialogs.checks.questions import (
    LIKE_THE_AGENT,
    NAMELESS,
    OFF_SUBJECT,
    UNFINISHED,
    copies_documents,
    find_fault,
    find_length_fault,
    find_talk_of_documents,
    speaks_like_the_prompt,
)
from generator.dialogs.dedup import Repetition
from generator.prompts.sections import Documents
from generator.schema import Turn
from tests.support.languages import speaking
from tests.support.records import make_passage
from tests.support.scripted import KINDS, piece, said
from tests.support.trams import BUS, DOCUMENTS, LONG, SAID, TRAM


@pytest.mark.parametrize(
    "question",
    [
        "In the two sentences, what is compared?",
        "What does sentence 4 mean?",
        "Is the fee in [3] still valid?",
        "From the context, what is the fee?",
        "Do the documents mention a fee?",
        "What is mentioned about parking?",
        "What does the guide say about the fee?",
        "Is there a document titled “Tram” that names the fee?",
        "Does the fee relate to any other information provided?",
    ],
)
def test_a_question_about_the_documents_is_refused(question: str) -> None:
    assert find_fault(question, DOCUMENTS, (), KINDS["direct"], Repetition(0.8)) == "speaks of the documents"


@pytest.mark.parametrize(
    "question",
    [
        "Which documents do I need for the licence?",
        "How long are the documents I must bring kept?",
        "Who voted for the passage of the bill?",
        "When was the passage from Dover opened?",
        "What did the article he wrote in 1990 cause?",
        "What was the role of women in the context of the war?",
        "From the documents that I send, what do you keep?",
    ],
)
def test_the_same_words_in_a_users_own_sense_are_accepted(question: str) -> None:
    assert find_fault(question, DOCUMENTS, (), KINDS["direct"], Repetition(0.8)) is None


def test_a_question_about_something_else_is_refused() -> None:
    tram = make_passage("a", "The tram is green at night. " * 9, title="Tram")

    def about(question: str, focus: str = "") -> str | None:
        return find_fault(question, Documents(passages=(tram,)), (), KINDS["direct"], Repetition(0.8), focus)

    assert about("Which is older?") == about("Can elephants jump?") == OFF_SUBJECT
    assert about("Can elephants jump?", "Elephants are heavy.") is about("How old is the tram?") is None


@pytest.mark.parametrize(
    ("question", "nameless"),
    [
        ("What does it say?", True),
        ("When did this debate evolve?", True),
        ("When did the debate on trams evolve?", False),
        ("Is it better to walk or to take the tram?", False),
        ("Does the tram run this week?", False),
        ("Are more trams late so far than at this stage last year?", False),
        ("Is it good to look at this stage?", True),
        ("Why are some trams late, and where are these trams?", False),
        ("Why does a tram carry these things?", True),
        ("When do those trams run?", True),
        ("How does the tram compare with those abroad?", False),
        ("What does a tram cost for those who are late?", False),
        ("Why are those HGTV shows on trams liked?", False),
        ("Why did she drive the tram?", True),
        ("How long does it take?", True),
        ("What year was it built?", True),
        ("Are they free for children?", True),
        ("Is it safe to take the tram?", False),
        ("How long does it take to get a ticket?", False),
        ("Would you say a ticket is worth it?", False),
        ("Does it stop in Orrin?", False),
        ("What did the driver of the tram tell her friends?", False),
    ],
)
def test_a_first_question_names_what_it_is_about(question: str, nameless: bool) -> None:
    def fault(history: tuple[Turn, ...]) -> str | None:
        return find_fault(question, DOCUMENTS, history, KINDS["direct"], Repetition(0.8))

    why = "names nothing that it is about"
    assert (fault(()) == why) is nameless and fault(SAID) != why


def test_a_name_may_look_like_one_of_the_documents() -> None:
    open_days = piece("p", "In March the museum of Germany is open on Saturday and Tuesday.")
    for question in ("Is the German museum open on Sunday?", "Is the museum open on Thursday?"):
        assert find_fault(question, Documents(passages=(open_days,)), (), KINDS["direct"], Repetition(0.8)) is None


@pytest.mark.parametrize(
    ("code", "text", "told", "refused"),
    [
        ("de", "Es wird nicht aus den Quellen gebaut.", "Pakete, die aus den Quellen gebaut werden.", False),
        ("de", "Es kommt in das Dokument.", "Einfügen kopiert es in das Dokument.", False),
        ("fr", "Cliquez dans le document.", "Cliquez dans le document, puis sur Coller.", False),
        ("es", "Haga clic en el texto.", "Haga clic en el texto y pulse F.", False),
        ("en", "You can add a note in the document.", "To add a note in the document, press F.", False),
        ("en", "It is mentioned in the document.", "To add a note in the document, press F.", True),
        ("de", "Es steht in diesem Dokument.", "Es würde in diesem Dokument zu weit führen.", True),
        ("de", "Das geht aus dem Text hervor.", "Hunde fahren gratis.", True),
        ("fr", "Le document indique 5 euros.", "Le document indique un prix.", True),
    ],
)
def test_what_passages_say_of_documents_isnt_about_them(code: str, text: str, told: str, refused: bool) -> None:
    with speaking(code):
        names: tuple[PatternName, ...] = ("scaffolding", "speaks_of_documents")
        talk = [find_talk_of_documents(text, [make_passage("p", told)], name) for name in names]
    assert any(talk) is refused


def test_the_examples_and_phrasings_of_question_types_are_accepted() -> None:
    texts = [text for kind in KINDS.values() for text in (*kind.phrasings, *(e.question for e in kind.examples))]
    assert len(texts) > 25
    for text in texts:
        why = find_fault(text, DOCUMENTS, (), KINDS["direct"], Repetition(0.8))
        assert why != "speaks of the documents", text


@pytest.mark.parametrize(
    ("text", "is_prompt"),
    [
        ("The user logs in.", False),
        ("The user guide has the prices.", False),
        ("The Agent logs in.", True),
        ("The User can borrow a kit.", True),
        ("This is what the User wants to know.", True),
        ("The user wants to know how one logs in.", True),
        ("No, I meant what the user asked.", True),
        ("What item does the user think is highly desired?", True),
    ],
)
def test_the_user_of_a_passage_may_be_spoken_of(text: str, is_prompt: bool) -> None:
    assert speaks_like_the_prompt(text, [BUS, make_passage("m", "All users log in.")]) is is_prompt
    assert speaks_like_the_prompt("The user logs in.", [BUS])
    orange = "The Agent Orange help line answers calls."
    assert not speaks_like_the_prompt(orange, [make_passage("o", orange)])


def test_a_user_does_not_speak_for_the_office_that_wrote_the_page() -> None:
    page = piece("form", "Sign the form that lets doctors give us information about a disability in the US.")

    def fault(question: str) -> str | None:
        return find_fault(question, Documents(passages=(page,)), (), KINDS["direct"], Repetition(0.8))

    assert fault("How do doctors give us information about a disability?") == LIKE_THE_AGENT
    assert fault("Does a doctor give us a form about the disability?") is None
    assert fault("Which form do doctors in the US sign?") is None


def test_a_copied_sentence_is_no_message() -> None:
    guide = TRAM.model_copy(update={"text": "Trams run every ten minutes on the line to the port."})
    copied = "so trams run every ten minutes on the line to the port"
    assert copies_documents(copied, [BUS, guide]) and not copies_documents(copied, [BUS])
    assert not copies_documents(f"Is it true that {copied}?", [guide])
    assert not copies_documents("I hear that trams run every ten minutes", [guide])
    longer = guide.model_copy(update={"text": f"{guide.text[:-1]} until the last ship of the day has come in."})
    assert copies_documents(f"Is it true that {longer.text[:-1]}?", [longer])


@pytest.mark.parametrize(
    ("message", "why"),
    [("Sorry, I was asking about that!", NAMELESS), ("That's not what I asked.", UNFINISHED)],
)
def test_a_correction_says_what_was_meant(message: str, why: str) -> None:
    documents = Documents(passages=(TRAM,))
    assert find_fault(message, documents, SAID, KINDS["correction"], Repetition(0.8)) == why


def test_a_later_question_that_is_short_or_points_back_need_not_share_a_word() -> None:
    documents = Documents(passages=(piece("m", f"{TRAM.text} {BUS.text} " * 9),))
    faults = [
        find_fault(question, documents, history, KINDS["follow-up"], Repetition(0.8))
        for question, history in (
            ("How costly is it?", SAID),
            ("How costly are elephants?", ()),
            ("Can elephants jump far?", SAID),
            ("Did anybody else complain about that?", SAID),
            ("Why did they close the pool?", SAID),
            ("Who runs the pool?", SAID),  # the tram runs, too
        )
    ]
    assert faults == [None, OFF_SUBJECT, OFF_SUBJECT, None, *["is on the topic of an example"] * 2]


def test_a_clarification_names_what_it_asks_about() -> None:
    said_before, asked = said(LONG), ("Do you mean what it says?", "Does that mean it is?", "Do you mean every night?")
    faults = [find_fault(text, DOCUMENTS, said_before, KINDS["clarification"], Repetition(0.8)) for text in asked]
    assert faults == [NAMELESS, NAMELESS, None]


@pytest.mark.parametrize(
    ("message", "tells"),
    [
        ("The bus is red and fast.", True),
        ("No, I meant the bus is fast and old.", True),
        ("How is the bus? It is red, fast and old.", True),
        ("The bus is red, fast and old. Why is that?", False),
        ("No, I meant the bus.", False),
        ("Is the bus red?", False),
        ("Tell me which bus is red.", False),
        ("bus red fast", False),  # as into a search box
    ],
)
def test_a_question_does_not_tell_what_it_should_ask_for(message: str, tells: bool) -> None:
    focus = "The bus is red, fast and old."
    fault = find_fault(message, DOCUMENTS, SAID, KINDS["follow-up"], Repetition(0.8), focus)
    assert (fault == "tells what it should ask for") == tells


@pytest.mark.parametrize("question", ["Πόσο κοστίζει η κάρτα;", "Πόσο κοστίζει η κάρτα\u037e", "Η ετήσια κάρτα Visa;"])
def test_a_greek_question_ends_in_a_semicolon(question: str) -> None:
    documents = Documents(passages=(piece("card", "Πόσο κοστίζει η κάρτα. Η ετήσια κάρτα Visa."),))
    with speaking("el"):
        asked, told = (
            find_fault(text, documents, (), KINDS["direct"], Repetition(0.8)) for text in (question, question[:-1])
        )
    assert (asked, told) == (None, "tells what it should ask for")


@pytest.mark.parametrize(
    ("code", "letter", "letters"), [("ja", "の", 30), ("ja", "中", 30), ("zh", "中", 24), ("th", "ก", 48)]
)
def test_in_scripts_without_spaces_prompts_and_drops_tell_the_length_of_a_question_in_letters(
    code: str, letter: str, letters: int
) -> None:
    kind = KINDS["direct"]
    with speaking(code):
        assert f"It has at most {letters} letters." in kind.prompt()
        assert f"It has at most {letters} letters." in kind.brief()
        assert find_length_fault(letter * letters, kind) is None
        assert find_length_fault(letter * (letters + 1), kind) == f"has more than {letters} letters"
        assert find_length_fault(letter * (2 * letters + 1), kind, last=True) == f"has more than {2 * letters} letters"
