"""The evidence of an answer, kept or chosen, with a scripted model."""

from collections.abc import Sequence

import pytest
from dspy import lm15

from generator.common.passages import passage
from generator.dialogs.steps import Answer, Asked
from generator.schema import Document, Passage, Turn
from tests.support.languages import speaking
from tests.support.scripted import KINDS, Entry, Scripted, piece, said, task
from tests.support.trams import FARES, TOLD


def cite(
    model: Scripted,
    ask: str = "What does an adult pay?",
    passages: Sequence[Passage] = (FARES,),
    reasoning: bool = True,
) -> list[str]:
    """Return the evidence of the answer to a question, by default from the fares; sentences 1 to 4 are theirs."""
    turn: Turn = model.run(lambda: Answer(reasoning=reasoning).acall(passages, (), Asked(ask), KINDS["direct"]))
    return [each.text for each in turn.evidence]


def test_evidence_that_does_not_is_chosen_once_from_the_best_sentences() -> None:
    model = Scripted(answer=[{"answer": TOLD, "evidence": [1, 4]}], evidence=[{"evidence": [3]}])
    assert cite(model) == ["Adults pay 5 crowns at the machine."]
    assert model.stages == ["answer", "evidence"]
    answering, choosing = (call.prompt for call in model.calls)
    assert "[3] Adults pay 5 crowns at the machine.\n[2] A child pays 2 crowns." in task(choosing)
    assert TOLD in task(choosing) and "[4] The tram is green." not in task(choosing)
    assert choosing.partition("<task>")[0] == answering.partition("<task>")[0]


@pytest.mark.parametrize(
    "reply",
    [{"evidence": [4]}, {"evidence": []}, "no", lm15.ServerError("HTTP 500: oops", status=500)],
    ids=["no better", "none", "unusable", "failing"],
)
def test_a_choice_that_does_not_help_changes_nothing(reply: Entry) -> None:
    model = Scripted(answer=[{"answer": TOLD, "evidence": [2]}], evidence=[reply, reply])
    assert cite(model) == ["A child pays 2 crowns."]


@pytest.mark.parametrize(
    ("ask", "told", "best"),
    [
        ("How do I make it creamy?", "By blending half of it.", "Blend half of the soup for a creamy texture."),
        ("How do I make it creamy?", "By stirring half of it.", "The soup has half a lemon."),  # none tells it all
        ("Should I blend half of the soup?", "Yes.", "Blend half of the soup for a creamy texture."),
    ],
)
def test_the_only_sentence_that_tells_it_all_is_evidence_in_place_of_one_that_tells_a_part(
    ask: str, told: str, best: str
) -> None:
    soup = piece("soup", "The soup has half a lemon. Blend half of the soup for a creamy texture. It freezes well.")
    model = Scripted(answer=[{"answer": told, "evidence": [1]}])
    assert cite(model, ask, [soup]) == [best]
    assert model.stages == ["answer"]


def test_sentences_cited_stay_where_no_choice_is_better() -> None:
    """The first tells nothing that the second doesn't, but the model cited both."""
    told = "Children pay 2 crowns, adults 5 crowns, dogs 9 bundles of hay."
    model = Scripted(answer=[{"answer": told, "evidence": [3, 2, 3]}], evidence=["{}", "{}"])
    repeated = piece("fares", "Fares. Adults pay 5 crowns. Adults pay 5 crowns, a child pays 2 crowns. Dogs eat hay.")
    assert len(cite(model, "What does it cost?", [repeated])) == 2
    assert model.stages[-1] == "evidence"


@pytest.mark.parametrize(
    ("text", "told", "cited"),
    [
        ("What do adults pay? Adults pay 5 crowns. Dogs pay half.", "Adults pay 5 crowns.", ["Adults pay 5 crowns."]),
        (
            "Adults pay 5 crowns. Is it free for dogs? Yes.",
            "Yes, it is free for dogs.",
            ["Is it free for dogs?", "Yes."],
        ),
        ("Adults pay 5 crowns. Is it free for dogs? Dogs pay half.", "Dogs pay half.", ["Dogs pay half."]),
        (
            "Dogs pay half at the kiosk. Ask for it. Kiosks also sell ice.",
            "Dogs pay half at kiosks.",
            ["Dogs pay half at the kiosk."],
        ),
        (
            "The kiosk includes a shop. Dogs pay half. Mice walk.",
            "That includes dogs, who pay half.",
            ["The kiosk includes a shop.", "Dogs pay half."],
        ),
        (
            "The kiosk is open daily, including Sunday. Dogs pay half. Mice walk.",
            "Everyone pays, including dogs, who pay half.",
            ["Dogs pay half."],
        ),
        (
            "The kiosk of Orrin sells sweet ice. Dogs pay half. Mice walk.",
            "In Orrin dogs pay half.",
            ["The kiosk of Orrin sells sweet ice.", "Dogs pay half."],
        ),
        (
            "Dogs enter at half price in most of the winter. Ice is sold at half price all the winter, too. Mice walk.",
            "At half price.",
            ["Dogs enter at half price in most of the winter."],
        ),
        (
            "Dogs pay half at kiosks. Mice walk. “Dogs pay half at kiosks.”",
            "Dogs pay half at kiosks.",
            ["Dogs pay half at kiosks."],
        ),
        ("Dogs are free. Dogs ride. Mice walk.", "Yes.", ["Dogs are free.", "Dogs ride.", "Mice walk."]),
        (
            "Dogs pay half. Cats pay half. Mice walk.",
            "Dogs pay half, and cats do.",
            ["Dogs pay half.", "Cats pay half."],
        ),
        (
            "Dogs ride free on weekdays at noon. The kiosk opens at nine. Mice walk.",
            "Dogs are free, and the kiosk opens at nine.",
            ["Dogs ride free on weekdays at noon.", "The kiosk opens at nine."],
        ),
    ],
)
def test_only_what_tells_it_is_evidence(text: str, told: str, cited: list[str]) -> None:
    """It is no question, unless “Yes.” follows that."""
    model = Scripted(answer=[{"answer": told, "evidence": [1, 2, 3]}])
    assert cite(model, "Are dogs free?", [piece("fares", text)]) == cited


@pytest.mark.parametrize(
    "facts",
    [["Anna was tried", "ended with an acquittal"], ["Anna was tried in May. The trial ended with an acquittal."]],
)
def test_a_sentence_that_a_fact_was_copied_from_is_evidence_in_whichever_words_the_answer_says_it(
    facts: list[str],
) -> None:
    text = "Anna was tried in May. The trial ended with an acquittal. Mice walk."
    told = {"facts": facts, "answer": "In May Anna was tried and acquitted."}
    model = Scripted(answer=[told | {"evidence": [1, 2, 3]}])
    cited = ["Anna was tried in May.", "The trial ended with an acquittal."]
    assert cite(model, "What happened to her?", [piece("trials", text)]) == cited


def test_a_model_that_copied_facts_cites_what_it_says_in_other_words() -> None:
    both = ["Who pays enough for the whole match gets extra money of the plan.", "The plan has a match each year."]
    told = {"facts": ["has a match each year"], "answer": "The plan has a match each year.", "evidence": [1, 2, 3]}
    passages = [piece("plans", " ".join([*both, "Mice plan."]))]
    assert cite(Scripted(answer=[told]), "Does the money of it count?", passages) == both
    assert cite(Scripted(answer=[told | {"facts": []}]), "Does the money of it count?", passages) == both[1:]


@pytest.mark.parametrize(("end", "start"), [(36, 19), (54, 26)], ids=["cut at the end", "cut at the start"])
def test_a_sentence_that_another_passage_has_whole_is_cited_from_there(end: int, start: int) -> None:
    text = "The tram is green. Adults pay 5 crowns at the machine. It runs at night."
    document = Document(id="fares", text=text)
    passages = (passage(document, 0, end), passage(document, start, len(text)))
    for cited in (2, 3):
        model = Scripted(answer=[{"answer": "They pay 5 crowns.", "evidence": [cited]}])
        assert cite(model, passages=passages) == ["Adults pay 5 crowns at the machine."]
    model = Scripted(answer=[{"answer": "It is a green tram, and adults pay.", "evidence": [1, 2]}])
    told = ["The tram is green.", "Adults pay 5 crowns at the machine."]
    assert cite(model, "Which colour is it, and who pays?", passages) == told


def test_a_sentence_of_two_passages_is_a_choice_once() -> None:
    document = Document(id="fares", text=" ".join([*FARES.text.split("\n"), "It has a bell."]))
    passages = (passage(document, 0, len(FARES.text)), passage(document, 0, len(document.text)))
    model = Scripted(answer=[{"answer": TOLD, "evidence": [4]}], evidence=[{"evidence": [3]}])
    assert cite(model, passages=passages) == ["Adults pay 5 crowns at the machine."]
    shown = task(model.calls[1].prompt)
    assert shown.count("Adults pay 5 crowns at the machine.") == shown.count("A child pays 2 crowns.") == 1


def test_a_cited_sentence_is_a_choice_though_eight_others_share_more() -> None:
    zones = (f"Adults pay 5 crowns and children {number} in zone {number}." for number in range(11, 20))
    told = "Adults pay 5 crowns and children 15 in zone 15, and 9 after nine."
    model = Scripted(answer=[{"answer": told, "evidence": [1]}], evidence=[{"evidence": [1]}])
    cite(model, passages=[piece("zones", " ".join(["Crowns are coins.", *zones]))])
    shown = task(model.calls[1].prompt)
    assert shown.count("in zone") - told.count("in zone") == 8 and "[1] Crowns are coins." in shown


def test_a_choice_that_completes_the_evidence_is_added() -> None:
    told = "Children pay 2 crowns, adults 5 crowns at the machine."
    model = Scripted(answer=[{"answer": told, "evidence": [2]}], evidence=[{"evidence": [3]}])
    assert cite(model, "What does it cost?") == ["Adults pay 5 crowns at the machine.", "A child pays 2 crowns."]


def test_another_sentence_joins_what_was_chosen_where_that_tells_a_part() -> None:
    parts = ["The range is 30 metres indoors.", "Up to 64 devices can be connected at a time."]
    told = "The range is 30 metres indoors, and up to 64 devices can be connected."
    model = Scripted(answer=[told], evidence=[{"evidence": [1]}])
    router = piece("router", " ".join([*parts, "It has a lamp."]))
    assert cite(model, "How many devices can be connected?", [router], reasoning=False) == parts


def test_no_sentence_joins_a_choice_that_covers_the_answer_for_one_word_of_it() -> None:
    """“Became” of the single's sentence is the answer's, and the album's has “becoming”."""
    album = "The album went platinum in May, becoming the best selling record of the year."
    single = "The single Fake became a hit, and the second best selling record of the next year."
    model = Scripted(answer=["In May it became the best-selling record of the year."], evidence=[{"evidence": [1]}])
    records = piece("records", f"{album} {single} It has a lamp.")
    assert cite(model, "How did the album do?", [records], reasoning=False) == [album]
    assert model.stages == ["answer", "evidence"]


def test_where_no_spaces_part_words_two_pairs_of_letters_may_be_one() -> None:
    """“起こります” is one word, which the other sentence has by chance."""
    edge = "これを忘れるとサブピクセルで線が入り、描線の縁で不完全消去をひきおこします。"
    other = "透過効果では完全な透過が起こります。"
    model = Scripted(
        answer=["サブピクセルで線が入り、描線の縁で不完全消去が起こります。"], evidence=[{"evidence": [1]}]
    )
    with speaking("ja"):
        found = cite(model, "忘れるとどうなりますか？", [piece("edges", f"{edge}{other}鞄は赤い。")], reasoning=False)
    assert found == [edge]


@pytest.mark.parametrize(
    ("before", "question", "answer", "texts"),
    [
        (
            ("How does it end?", "In the end she changed her mind and liked being special."),
            "Does she no longer want to be orange?",
            "Yes. After the water she changed her mind.",
            [
                "Her mother drops Cotton into a bucket of water.",
                "Then Cotton changed her mind and liked being special.",
            ],
        ),
        (
            ("Which album sold better?", "The Next Move: it became the best-selling record of 1986."),
            "Do you mean the best-selling record?",
            "Yes, it became the best-selling record of 1986.",
            ["In 1986 The Next Move was released.", "It went platinum, becoming the best selling record of the year."],
        ),
    ],
)
def test_what_tells_again_what_was_asked_or_said_before_is_evidence(
    before: tuple[str, str], question: str, answer: str, texts: list[str]
) -> None:
    model = Scripted(answer=[answer], evidence=[{"evidence": [1, 2]}])
    passage, step = piece("told", " ".join([*texts, "Mice walk."])), Answer(reasoning=False)
    turn: Turn = model.run(lambda: step.acall([passage], said(before), Asked(question), KINDS["clarification"]))
    assert [each.text for each in turn.evidence] == texts


def test_what_is_chosen_is_evidence_where_nothing_is_cited_though_its_words_are_others() -> None:
    texts = ["You can also start a new form.", "You need a place for it.", "The form is of no use elsewhere."]
    model = Scripted(answer=["Yes, you start a new form in place of it."], evidence=[{"evidence": [1]}])
    chosen = cite(model, "Do you mean that I start a new form?", [piece("forms", " ".join(texts))], reasoning=False)
    assert chosen == texts[:1]


@pytest.mark.parametrize("heading", ["Night bus", "## The night bus"])
def test_a_title_or_heading_is_no_evidence(heading: str) -> None:
    titled = piece("f", f"{heading}\nIt runs hourly.").model_copy(update={"title": "Night bus"})
    model = Scripted(answer=[{"answer": "Yes, there is a night bus.", "evidence": [1]}])
    assert cite(model, "Is there a night bus?", [titled]) == []


@pytest.mark.parametrize("chosen", [[], [3, 1, 2]])
def test_evidence_is_what_covers_the_answer_whether_nothing_is_chosen_or_too_much(chosen: list[int]) -> None:
    text = "The ferry takes 40 minutes and no cars. A car waits for the barge. The ferry takes no cars."
    model = Scripted(answer=["It takes 40 minutes, and cars wait for the barge."], evidence=[{"evidence": chosen}] * 2)
    both = ["A car waits for the barge.", "The ferry takes 40 minutes and no cars."]
    assert sorted(cite(model, "How long is the trip?", [piece("ferry", text)], reasoning=False)) == both


def test_what_is_cited_in_another_language_is_left_to_the_model() -> None:
    german = "Erwachsene zahlen am Automaten fünf Kronen, wenn sie mit der Straßenbahn fahren."
    model = Scripted(answer=[{"answer": TOLD, "evidence": [1]}])
    assert cite(model, passages=[piece("fares", f"{german} The machine in the hall takes only coins.")]) == [german]
    assert model.stages == ["answer"]
