"""Checks of answers: each on answers that it refuses, and on near misses that pass."""

import pytest

from generator.dialogs.checks.answers import find_answer_fault, find_voice_fault
from generator.dialogs.checks.questions import OFF_SUBJECT, speaks_of_documents
from tests.support.languages import speaking
from tests.support.records import make_passage
from tests.support.scripted import piece, said

DOES = "Does the night tram stop at the harbour?"
WHAT = "What does a ticket for the night tram cost?"
LONG = "A ticket for the night tram costs three crowns from any machine."


def fault(answer: str, question: str = WHAT, *earlier: str) -> str | None:
    found = find_answer_fault(answer, question, said(*((WHAT, text) for text in earlier)))
    return found and found.partition(":")[0]


@pytest.mark.parametrize(
    "answer",
    [
        "The documents do not provide the price of a ticket.",
        "The documents do not explicitly mention a price.",
        "Both passages list a price of three crowns.",
        "As stated in sentence 3, it costs three crowns.",
        "Pay three crowns at [insert address].",
        "It costs three crowns by day. They do not provide any information about the night.",
        "It is cheap, but it doesn’t provide enough information to tell the price.",
        "It costs three crowns, which is given in the 'Tariff 2024' document.",
        "The information provided does not mention a price.",
        "The retrieved documents say three crowns.",
        "The article doesn't mention a price.",
        "It is mentioned that it costs three crowns.",
        "The author says three crowns.",
        "It costs three crowns [doc 1].",
        "The page on prices says three crowns.",
        "As mentioned above, it costs three crowns.",
        "Both passages agree on three crowns.",
        "According to my sources, it costs three crowns.",
        "According to the City Library document, it costs three crowns.",
        "Please find the price below.",
        "It costs three crowns, as stated in paragraph 4 of the document.",
        "According to the leaflet provided, it costs three crowns.",
        "As outlined in the tariff above, it costs three crowns.",
        "The information you've provided doesn't mention a price.",
        "The facts do not tell the price.",
    ],
)
def test_an_answer_that_speaks_of_the_documents_is_refused(answer: str) -> None:
    assert fault(answer) == "speaks of the documents"


@pytest.mark.parametrize(
    "answer",
    [
        "Bring the documents that prove your age; they are checked at the counter.",
        "The passage of the bill in 1990 made tickets cheaper.",
        "The judge read the sentence of ten years aloud.",
        "You can find the text of the treaty in the library.",
        "According to the ministry, it costs three crowns.",
        "Your documents must be shown in the tram.",
        "The article was written in 1990.",
        "The information provided by the ministry is free.",
        "You can send in the documents online.",
        "The source of the river is a lake.",
        "According to the tariff, it costs three crowns.",
        "The leaflet above the machine has the prices.",
        "The facts of the case are known to the clerk.",
        "Click OK in the Text Import dialog.",
        "Tick Fixed, and type the ratio in the text box below.",
        "In the Page Break Preview, drag its border.",
        "It is listed in the Document Properties dialog.",
    ],
)
def test_the_same_words_in_another_sense_are_accepted(answer: str) -> None:
    assert fault(answer) is None


@pytest.mark.parametrize("code", ["de", "es", "fr", "pl", "ja"])
def test_what_cites_is_refused_in_any_language(code: str) -> None:
    with speaking(code):
        for cited in ("5 € [2].", "5 € [2, 3].", "5 €【2†a】.", "5 € [2][3]."):
            assert find_answer_fault(cited, "?", []) == "speaks of the documents: write “5 €.”"


@pytest.mark.parametrize(
    ("code", "talk"),
    [
        ("de", "Dem Text zufolge kostet es 5 Euro."),
        ("es", "La información proporcionada no incluye el precio."),
        ("es", "¿Qué dice el texto sobre la piscina?"),
        ("fr", "Que dit le texte sur la piscine ?"),
    ],
)
def test_in_other_languages_documents_are_spoken_of_in_other_ways(code: str, talk: str) -> None:
    with speaking(code):
        assert find_voice_fault(talk, [])


def test_an_index_and_a_paragraph_that_a_passage_names_are_the_documents_own() -> None:
    assert fault("sys.argv[0] is the name of the script.") is None
    assert fault("An investor in this context means everyone who buys stock.") is None
    assert fault("In this context, an investor is who buys stock.") is not None
    lease = piece("lease", "A pet is allowed by paragraph 5. The rent is due each month.")
    answer, question = "Yes, paragraph 5 allows one pet.", "Does paragraph 5 allow a pet?"
    assert find_answer_fault(answer, question, [], (lease,)) is None
    assert find_answer_fault(answer.replace("5", "4"), question, [], (lease,)) is not None
    code = piece("code", "The default of sizes is [4, 5]. It may be [6].")
    for text, is_talk in (("It is [4, 5].", False), ("It is [5, 6].", True), ("It is [6].", True)):
        assert speaks_of_documents(text, (code,)) is is_talk
    assert speaks_of_documents(question) and not speaks_of_documents(question, (lease,))


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("Sure, here is the answer.", WHAT),
        ("I can help with that.", WHAT),
        ("Of course! I'd be happy to help you with that. Let me look it up.", WHAT),
        (WHAT, WHAT),
        (DOES, "does the nihgt tram stop at the harbuor"),
        ("Yes.", WHAT),
        ("N/A", WHAT),
        ("The prices are as follows:", WHAT),
        ("What does a day ticket cost?", WHAT),
        ("Yes, what does a day ticket cost?", DOES),
        ("Tickets and prices | City of Orrin", WHAT),
        ("Yes, the night tram is cheap.", "I hear that the night tram is cheap."),
        ("The night tram stops at the harbour.", "night tram stop harbour"),
        ("No, it does not.", "How does it get to the harbour?"),
        ("The cost of a ticket for the night tram.", WHAT),
        ("You pay your fee at the counter.", "Why do I pay my fee at the counter?"),
        ("Because you pay your fee at the counter.", "Why do I pay my fee at the counter?"),
        ("Will the night tram stop at the harbour in winter, too?", DOES),
        ("I'd be happy to explain what a ticket costs!", WHAT),
        ("Certainly! I can provide more information about tickets.", WHAT),
        ("The day ticket.", "And how much is it?"),
        ("A survey of 2005–06 tells of the tram's drivers, and in May 2010 it was held again.", "How many ride it?"),
        ("The tram leaves from the harbour and goes to the old market.", "And how long does the ride take?"),
        ("Both stop at the harbour. Both are green.", "What's the difference between the tram and the bus?"),
        ("I hope this helps! If you have more questions, feel free to ask.", WHAT),
        ("There are good people to follow though that know it.", "What are good people to follow to know it?"),
        ("It's cheaper to take the tram or the bus.", "Is it cheaper to take the tram or the bus?"),
        (
            "It is the world's largest harbour because it is the world's largest harbour by area.",
            "What makes it the world's largest harbour?",
        ),
        ("Who parks at the harbour is fined.", "Who parks at the harbour?"),
    ],
)
def test_an_answer_that_answers_nothing_is_refused(answer: str, question: str) -> None:
    assert fault(answer, question) == "answers nothing"


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("I can help with that. It costs three crowns.", WHAT),
        ("Here are the prices: 3 crowns by day, 5 by night.", WHAT),
        ("I don't have information on what a ticket for the night tram costs.", WHAT),
        ("Yes.", DOES),
        ("Two.", "How many lines are there?"),
        ("The night tram runs hourly.", "the night tram"),
        ("None of them.", "How many lines stop there?"),
        ("Do you mean the day ticket or the night ticket?", "How much is it?"),
        ("They don't pay.", "How much do children pay?"),
        ("It doubles every night.", "How much is it?"),
        ("In 2005 the tram had 2010 passengers a day.", "How many people took it?"),
        ("Some 1500–2000 people.", "How many people took it?"),
        ("Ships were too large for the river.", "Why did the harbour grow?"),
        ("Both stop at the harbour: the tram daily, the bus on Sundays.", "What's the difference between the two?"),
        ("Both stop at the harbour. The tram is green.", "What's the difference between the two?"),
        ("Both stop at the harbour, but only the tram runs at night.", "What's the difference between the two?"),
        ("I don't have information on that. Please ask the drivers at the counter.", "Is there a bar on the tram?"),
        ("I don't know.", "How many lines are there?"),
        ("I don't know if the ferry to Orrin runs on Sundays in winter.", WHAT),
        ("The number of lines isn't known, but the tram serves the harbour.", "How many lines are there?"),
        ("I don't know when it opened; it has 24 berths.", "What year did it open?"),
        ("A crown a day, or a cup of tea.", "How much is it?"),
        ("A pinch.", "How much salt do I need?"),
        ("It's included in the ticket.", "How much is a locker?"),
        ("Just under two hours.", "How long does the ride take?"),
        ("Until the end of the season.", "How long is a ticket valid?"),
        ("From May to October.", "How long is the harbour open?"),
        ("From spring to autumn.", "How long is the harbour open?"),
        ("It closed in 2005.", "How long was the tram in use?"),
        ("I can tell you about the tram, but not about parking.", "How is the parking?"),
        ("Anything else I can help you with?", "Thanks, that's all."),
        ("In May.", "When did it open?"),
        ("The driver placed second.", "How did the driver place in the race?"),
        ("In the late nineteenth century.", "What year did it open?"),
        ("It opened in 1862.", "And in what year did it open?"),
        ("Do you want to know when the night tram stops?", DOES),
        ("The harbour opened in May.", "When did the harbour open?"),
        ("The night tram stops at the harbour.", DOES),
        ("Yes, the night tram stops at the harbour.", "night tram stop harbour"),
        ("Yes, the night tram is cheap.", "so the night tram is cheap"),  # typed without its question mark
        ("The tram.", "What is cheaper, the tram or the bus?"),
        ("It is cheaper to take the tram.", "Is it cheaper to take the tram or the bus?"),
        ("Yes, you can take the tram or the bus.", "Can I take the tram or the bus?"),
        ("| Ticket | Price | | --- | --- | | Day | 2 crowns |", WHAT),
        ("Run ls | wc -l", WHAT),
        ("Declare it as int | None.", WHAT),
        ("The last song was Are You Ready?", "What was the last song?"),
        (
            "The night tram stops at the harbour. In winter the day tram stops at the harbour, too.",
            "Which tram stops at the harbour?",
        ),
    ],
)
def test_a_short_answer_or_a_refusal_is_accepted(answer: str, question: str) -> None:
    assert fault(answer, question) is None


@pytest.mark.parametrize(
    ("code", "question", "wrong", "right"),
    [
        ("de", "Wie viele Linien halten dort?", "Die Bahn fährt durch ein Tal.", "Nur eine."),
        ("de", "Und wie viel kostet das?", "Die Karte gibt es am Schalter.", "Für Kinder ist es frei."),
        ("de", "Wie lange dauert die Fahrt?", "Die Fähre fährt zur Insel.", "Bis zum Abend."),
        ("de", "In welchem Jahr begann der Bau?", "Er hat 24 Plätze.", "In den 70er Jahren."),
        ("de", "Was ist der Unterschied zwischen Bus und Bahn?", "Beide halten hier.", "Die Bahn ist grün."),
        ("fr", "Combien de lignes y passent ?", "Le tram traverse la vallée.", "Une seule."),
        ("fr", "Combien de temps dure le trajet ?", "Le bac va à l'île.", "Jusqu'au soir."),
        ("fr", "En quelle année fut-il ouvert ?", "Il a 24 places.", "Dans les années vingt."),
        ("fr", "Quelle est la différence entre le bus et le tram ?", "Les deux vont au port.", "Le bus coûte moins."),
        ("es", "¿Cuántas líneas paran allí?", "El tranvía recorre el valle.", "Solo una."),
        ("es", "¿Cuánto dura el viaje?", "El barco va a la isla.", "Hasta la noche."),
        ("es", "¿En qué año se abrió?", "Tiene 24 plazas.", "En los años veinte."),
        ("es", "¿Cuál es la diferencia entre el bus y el tranvía?", "Ambos paran allí.", "El bus es verde."),
    ],
)  # fmt: skip
def test_other_languages_want_a_number_a_year_or_a_difference_too(
    code: str, question: str, wrong: str, right: str
) -> None:
    with speaking(code) as (_, language):
        assert (find_answer_fault(wrong, question, ()) or "").startswith("answers nothing")
        for answer in (right, language.unknown):
            assert find_answer_fault(answer, question, ()) is None


@pytest.mark.parametrize(
    "refusal",
    [
        "I don't have information on other museums.",
        "I don't know which classes those are.",
        "It isn't known how to create a save key.",
    ],
)
def test_what_is_unknown_beside_an_answer_may_be_anything(refusal: str) -> None:
    told = piece("museums", "The museums received 214 classes: 96 at the Harbour Museum, 40 at the Salt Works.")
    answer = f"The Salt Works received 40 classes. {refusal}"
    assert find_answer_fault(answer, "How many classes visited the museums?", (), [told]) is None


def test_a_heading_in_brackets_is_no_citation() -> None:
    with speaking("ja"):
        assert find_voice_fault("【早割】プランは3000円です。", ()) is None
        assert find_voice_fault("プランは3000円です【4:0†source】。", ())


def test_an_answer_that_repeats_an_earlier_one_is_refused() -> None:
    again = "The ticket for the night tram costs three crowns, from any machine!"
    assert fault(again, "Is that right?", LONG, "Yes.") == "repeats an earlier answer"
    reordered = "Three crowns is what any machine asks for the night tram's ticket; that is its cost."
    assert fault(reordered, "Is that right?", LONG) == "repeats an earlier answer"
    goal = "The goal of the harbour is to serve sailors well."
    before = said(("What is the harbour's goal?", goal))
    again = "The purpose of the harbour is to serve sailors well."
    assert find_answer_fault(again, "What is the harbour's purpose?", before) == "repeats an earlier answer"
    fares = said(("And the tram?", "The tram costs five crowns a week."))
    assert find_answer_fault("The bus costs five crowns a week.", "And the bus?", fares) is None


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        (f"I don't have information on which night is meant. Still, {LONG[0].lower()}{LONG[1:]}", "Which night?"),
        (f"Yes, {LONG[0].lower()}{LONG[1:]}", "Do you mean three crowns from all of them?"),
    ],
)
def test_what_was_told_may_be_told_again_beside_a_refusal_or_a_yes(answer: str, question: str) -> None:
    assert fault(answer, question, LONG) is None
    assert fault(answer.partition(", ")[2], question, LONG) == "repeats an earlier answer"


def test_a_sentence_that_was_said_is_left_out() -> None:
    new = "Children under six travel free of charge in the company of an adult."
    for answer, earlier in ((f"{LONG} {new}", LONG), (f"{new} {new}", "Yes.")):
        found = find_answer_fault(answer, WHAT, said((WHAT, earlier))) or ""
        assert found.count(new) == 1 and LONG not in found
    assert fault(f"Yes. {new} Yes.", WHAT, "Yes.") is None
    octavian = "The first emperor of Rome was Octavian."
    assert fault(octavian, "Who was first?", octavian) == "repeats a sentence"


@pytest.mark.parametrize(
    ("answer", "earlier"),
    [
        ("Yes, it does.", "Yes, it does."),
        ("In May 1983.", "In May 1983."),
        ("A ticket for the day tram costs two crowns from any conductor.", LONG),
        ("I don't have any information on the price of night trams.",) * 2,
    ],
)
def test_a_short_answer_or_a_refusal_may_come_twice(answer: str, earlier: str) -> None:
    assert fault(answer, "And on Sundays?", earlier) is None


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        ("According to the documents, it costs three crowns.", "write “It costs three crowns.”"),
        ("The documents state that it costs three crowns.", "write “It costs three crowns.”"),
        ("Based on the information provided in the documents, it costs 3.", "write “It costs 3.”"),
        ("It costs 3, as mentioned in the documents.", "write “It costs 3.”"),
        ("It costs 3. This is stated in the second document.", "write “It costs 3.”"),
        ("You pay three crowns [18, 19]. It is cheap【2】.", "write “You pay three crowns. It is cheap.”"),
        ("You pay three crowns [18]. It is cheap [2][3].", "write “You pay three crowns. It is cheap.”"),
        ("According to the documents [2], it costs 3.", "write “It costs 3.”"),
        ("The documents give its price, but nothing else.", "say the fact itself, without “The documents give”"),
        ("As stated in sentence 3, the documents say that it costs 3.", "say the fact itself, without “sentence 3”"),
    ],
)
def test_a_refusal_of_talk_about_documents_tells_what_to_write(answer: str, remedy: str) -> None:
    found = find_answer_fault(answer, WHAT, [])
    assert found == f"speaks of the documents: {remedy}"


def test_an_answer_about_something_else_is_refused() -> None:
    tariff = make_passage("a", "The night tram costs three crowns. " * 9)

    def about(answer: str) -> str | None:
        return find_answer_fault(answer, WHAT, (), [tariff])

    assert about("10,536") == about("Elephants can't jump over walls.") == OFF_SUBJECT
    assert about("I don't have information on that.") is about("Three crowns for a ticket.") is None
    assert about("Not necessarily.") is about("It depends on your age.") is None


@pytest.mark.parametrize(
    ("answer", "stops"),
    [
        ("It costs three crowns, and it is sold at the", True),
        ("A ticket for the night tram is an example of a", True),
        ("It costs three crowns (sold at the kiosk and).", True),
        ("It costs three crowns at night, because", True),
        ("Three crowns, in tariff zone A", False),
        ("Three crowns, which is what a ticket by day costs, too.", False),
    ],
)
def test_an_answer_ends_with_a_sentence(answer: str, stops: bool) -> None:
    assert (fault(answer) == "ends in the middle of a sentence") is stops


@pytest.mark.parametrize(
    ("answer", "contrary"),
    [
        ("Yes, lost keys are refunded.", "refunded"),
        ("No, full months are not refunded.", "not refunded"),
        ("At least five lockers are open in July.", "At least five"),
        ("The pool is closed in July.", "closed"),
        ("No, lost keys aren't refunded.", ""),
        ("Full months are refunded, but lost keys are not.", ""),
        ("The pool is open in July.", ""),
        ("It is not refunded if you never paid anything at the desk.", ""),  # in other words than the pool's
    ],
)
def test_an_answer_does_not_say_the_contrary_of_what_is_told(answer: str, contrary: str) -> None:
    text = "The pool is open in July. At most five lockers are open then. Full months are refunded. Lost keys are not "
    pool = piece("pool", f"{text}refunded.")
    found = find_answer_fault(answer, "What about July, keys and full months?", (), [pool]) or ""
    assert found.endswith(f": “{contrary}”") if contrary else not found


def test_a_number_is_not_that_of_something_else() -> None:
    hire = piece("hire", "A day costs 14 euros for a city bike and 22 euros for a cargo bike.")
    question = "How much is a cargo bike for a day?"
    assert "“14 euros”" in (find_answer_fault("14 euros a day.", question, (), [hire]) or "")
    assert find_answer_fault("22 euros a day.", question, (), [hire]) is None
