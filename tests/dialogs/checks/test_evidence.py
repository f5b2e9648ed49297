"""Evidence is compared with its answer, without a model."""

from collections.abc import Sequence

import pytest

from generator.dialogs.checks.evidence import find_uncovered, measure_support, measure_turn, rank_sentences
from generator.schema import Answerability, Evidence, Planned
from tests.support.languages import speaking
from tests.support.records import make_evidence_of, make_passage, make_turn
from tests.support.scripted import piece

PLANNED = Planned(question_type="direct")
ASKED = "What does a ticket for the tram cost?"
PRICE, COLOUR = "An adult's ticket costs 5 crowns from a machine.", "The tram is green."
VALID = "A ticket from a machine is valid for two months."


@pytest.mark.parametrize(
    ("answer", "evidence", "covered", "missing"),
    [
        ("A ticket costs five crowns from a machine.", [PRICE], True, ()),
        ("A ticket costs six crowns from a machine.", [PRICE], False, ("six",)),
        ("It costs 5 crowns.", [COLOUR], False, ("5", "crowns")),
        ("It costs 5 crowns.", ["Tram tickets"], False, ("5", "crowns")),
        ("It costs 5 crowns.", [], False, ("5", "crowns")),
        ("The tram ticket.", [COLOUR], True, ("ticket",)),
        ("Yes.", [COLOUR], True, ()),
        ("Yes.", ["It opened in May."], False, ()),
        ("Yes.", [], False, ()),
        ("I don't have information on what a ticket costs.", [], True, ()),
        (
            "The price isn't specified. However, a machine sells tickets for 5 crowns.",
            [],
            False,
            ("machine", "sells", "5"),
        ),
        ("I don't know. Do you mean the day ticket, or the night ticket?", [], True, ()),
        ("I don't know the price, but a machine sells tickets.", ["A machine sells them."], True, ()),
        (
            "There are two things to know: an adult's ticket costs 5 crowns, and machines sell it.",
            [PRICE],
            True,
            ("two",),
        ),
        ("You pay one of three prices: 5 crowns from a machine, 5 crowns, or 5.", [PRICE], True, ("pay", "prices")),
        ("You pay four prices: 5 crowns from a machine, or 5.", [PRICE], False, ("four",)),
        ("A ticket from a machine is valid for three months.", [VALID], False, ("three months",)),
        ("A ticket from a machine is valid for two months.", [VALID], True, ()),
        ("It lasts three hours: an adult's ticket, a machine, or crowns.", [COLOUR], False, ("three hours",)),
        ("It lasts five hours: an adult's ticket, a machine, crowns, or an adult.", [COLOUR], False, ("five",)),
        ("Although I have no details on the price, machines sell tickets.", ["A machine sells them."], True, ()),
    ],
)
def test_evidence_covers_what_an_answer_adds(
    answer: str, evidence: list[str], covered: bool, missing: tuple[str, ...]
) -> None:
    support = measure_support(answer, [ASKED], evidence)
    assert support.covered == covered
    assert set(missing) <= set(support.missing) and bool(missing) == bool(support.missing)


@pytest.mark.parametrize(
    ("code", "question", "answer", "evidence", "covered"),
    [
        ("ja", "フィルターも水洗いできますか？", "いいえ、水洗いできません。", "フィルターは水洗いできません。", True),
        (
            "ja",
            "いつまでに申し込みますか？",
            "ネットなら5日前までに申し込めば大丈夫です。",
            "ネットでは、5日前までに申し込んでください。",
            True,
        ),
        (
            "ja",
            "いつまでに申し込みますか？",
            "ネットなら9日前までに申し込めば大丈夫です。",
            "ネットでは、5日前までに申し込んでください。",
            False,
        ),
        ("zh", "那涂层磨损能保修吗？", "不能，不在保修范围内。", "涂层磨损和商业用途不在保修范围内。", True),
        ("zh", "冷藏能放几天？", "可以保存3天，但是要密封，还要放凉。", "放凉后密封，冷藏可保存3天。", True),
        ("zh", "冷藏能放几天？", "可以保存9天，但是要密封，还要放凉。", "放凉后密封，冷藏可保存3天。", False),
    ],
)
def test_words_that_tell_nothing_need_no_evidence_where_no_spaces_part_them(
    code: str, question: str, answer: str, evidence: str, covered: bool
) -> None:
    with speaking(code):
        assert measure_support(answer, [question], [evidence]).covered == covered


def test_the_title_of_a_cited_passage_is_an_answer() -> None:
    pool = make_passage("p", "It opens on Sundays from nine.", title="Quillon swimming pool")
    turn = make_turn(
        1,
        query="Which one opens on Sundays?",
        answer="The Quillon swimming pool.",
        reasoning="It does.",
        evidence=(make_evidence_of(pool, pool.text),),
    )
    assert find_uncovered([pool], [], turn) is None
    assert find_uncovered([pool], [], turn.model_copy(update={"evidence": ()})) is not None


def test_the_heading_above_a_cited_sentence_is_an_answer() -> None:
    rules = make_passage(
        "p", "## Power\n\nDo not share it.\n\n## Internet\n\nWho shares the code is cut off.\n\n## Wardens"
    )
    cited = make_evidence_of(rules, "Who shares the code is cut off.")
    turn = make_turn(1, query="What is cut off if I share the code?", reasoning="It is.", evidence=(cited,))
    answers = {"The internet.": None, "The power.": "power", "The wardens.": "wardens"}
    for answer, missing in answers.items():
        why = find_uncovered([rules], [], turn.model_copy(update={"answer": answer}))
        assert why is None if missing is None else missing in str(why)


def test_words_said_before_need_no_proof() -> None:
    assert not measure_support("The driver of the night tram is Ada.", [ASKED], ["Ada drives it."]).covered
    assert measure_support(
        "The driver of the night tram is Ada.", ["Who drives the night tram?"], ["Ada does."]
    ).covered


def test_a_number_that_might_be_a_sum_of_what_was_said_needs_evidence() -> None:
    said = [
        "What about bookings, how long may they be at most?",
        "What's the difference between the introductions for the 3D printer and the laser cutter?",
        "The introduction to the 3D printer takes 1 hour, that to the laser cutter 3 hours.",
        "Using the workshop at the Harbour Library",
    ]
    answer = "The 3D printer can be booked for 6 hours at most, the laser cutter for 2 hours."
    rows = ["3D printer | 1 hour | 6 hours", "Laser cutter | 3 hours | 2 hours"]
    assert not measure_support(answer, said, []).covered and measure_support(answer, said, rows).covered


@pytest.mark.parametrize(("code", "count"), [("en", "Two"), ("de", "Zwei"), ("fr", "Deux"), ("es", "Dos")])
def test_how_many_things_follow_needs_no_proof_in_any_language(code: str, count: str) -> None:
    with speaking(code):
        assert measure_support(f"{count}: Orrin, Vellas.", ["Orrin?"], ["Orrin, Vellas"]).covered
        assert not measure_support("9: Orrin, Vellas.", ["Orrin?"], ["Orrin, Vellas"]).covered


def test_how_many_things_the_cited_sentences_tell_one_by_one_needs_no_proof() -> None:
    kinds = ("From the left (mixed)", "From the left (upright)", "From the right (mixed)", "From the right (upright)")
    page = piece("Text", "\n\n".join(f"{kind}: the text runs so." for kind in kinds))
    cited = tuple(make_evidence_of(page, line) for line in page.text.split("\n\n"))

    def find(count: str, evidence: Sequence[Evidence]) -> str | None:
        answer = f"There are {count} ways: from the left and from the right, each of them mixed or upright."
        turn = make_turn(1, query="How can text run?", answer=answer, evidence=evidence, planned=PLANNED)
        return find_uncovered([page], [], turn)

    assert find("four", cited) is None
    assert find("four", cited[:3]) is not None
    assert find("five", cited) is not None


def test_a_sentence_that_only_repeats_the_question_needs_evidence_too() -> None:
    asked, told = "Are cycles forbidden on the beach as sand ruins chains?", "The battery lasts for 60 km."
    answer = f"{told} Cycles are forbidden on the beach as sand ruins chains."
    assert not measure_support(answer, [asked], [told]).covered
    assert measure_support(answer, [asked], [told, "No cycles on the beach: sand ruins chains."]).covered


def test_only_generated_answers_are_measured() -> None:
    passage = piece("tram", PRICE)
    turn = make_turn(1, query=ASKED, answer="It costs 5 crowns.", evidence=())
    planned = turn.model_copy(update={"planned": PLANNED})
    cited = make_evidence_of(passage, PRICE)
    assert measure_turn((passage,), (), turn) is None
    assert measure_turn((passage,), (), planned.model_copy(update={"answerability": "conversational"})) is None
    for evidence, covered in (((), False), ((cited,), True)):
        support = measure_turn((passage,), (), planned.model_copy(update={"evidence": evidence}))
        assert support is not None and support.covered == covered


def test_sentences_are_ranked_by_the_words_they_share_with_answer_and_question() -> None:
    sentences = ["Trams", COLOUR, PRICE, "It rains."]
    assert rank_sentences(sentences, "", ASKED)[0] == 2
    assert rank_sentences(sentences, "Green.", "What is it like?") == [1]
    assert rank_sentences(sentences, "", "Why?") == []


@pytest.mark.parametrize(("evidence", "covered"), [("The tram is green.", False), ("The tram is fast.", True)])
def test_what_a_question_asks_to_confirm_is_told_by_the_evidence(evidence: str, covered: bool) -> None:
    assert measure_support("Yes, the tram is fast.", ["Is the tram fast?"], [evidence]).covered == covered


@pytest.mark.parametrize(
    ("answerability", "question", "answer"),
    [
        (
            "unanswerable",
            "Why does the library allow three extensions?",
            "The library doesn't allow three extensions. A loan can be extended twice.",
        ),
        (
            "unanswerable",
            "How heavy is the reading room's loan?",
            "I don't understand that question. Could you say it differently? A loan can be extended.",
        ),
        ("underspecified", "How long does it last?", "There are heritage items and others. Which do you mean?"),
    ],
)
def test_what_a_reply_says_that_answers_nothing_needs_no_evidence_but_for_its_numbers(
    answerability: Answerability, question: str, answer: str
) -> None:
    library = piece("Lending", "A loan can be extended twice, unless it is reserved. Films are lent for 7 days.")
    cited = (make_evidence_of(library, "A loan can be extended twice, unless it is reserved."),)

    def find(text: str, of: Answerability) -> str | None:
        turn = make_turn(1, query=question, answer=text, answerability=of, evidence=cited, reasoning="It is told.")
        return find_uncovered([library], [], turn)

    assert find(answer, answerability) is None
    assert find(f"{answer} Films are lent for 7 days.", answerability) is not None
    assert find("Books bought last year are lent for long.", "answerable") is not None


@pytest.mark.parametrize(
    ("answer", "uncovered"),
    [
        ("You can have six workers at most. Another one costs four coins.", False),  # “pay”
        ("You can have six workers at most. Another one costs nine coins.", True),
        ("Another one costs half a farm.", True),
    ],
)
def test_a_word_of_its_own_is_no_fault_of_an_answer_that_has_all_else_from_its_evidence(
    answer: str, uncovered: bool
) -> None:
    rules = piece("rules", "You can have six workers at most. Hire: pay four coins and take another worker.")
    setup = make_turn(1, query="What does each take?", answer="Each takes six cards, four workers and five coins.")
    cited = tuple(make_evidence_of(rules, each) for each in rules.text.split(". "))
    turn = make_turn(2, query="And how many of those can I have?", answer=answer, planned=PLANNED, evidence=cited)
    assert (find_uncovered([rules], [setup], turn) is not None) is uncovered
