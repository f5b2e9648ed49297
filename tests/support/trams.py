"""Passages on trams, a dialog about them, and the answer to a question from them."""

from generator.dialogs.steps import Answer, Asked
from generator.prompts.sections import Documents
from generator.schema import Hit, Turn
from tests.support.scripted import KINDS, Scripted, piece, said

TRAM, BUS = piece("tram", "The tram is green. It runs at night."), piece("bus", "The bus is red.")
DOCUMENTS = Documents(passages=(TRAM, BUS))
SAID = said(("Which colour is the tram?", "It is green."), ("Does it run at night?", "Yes."))
LONG = ("Does it run at night?", "The green tram runs every night from the harbour to the hill.")
FARES = piece("fares", "Fares. A child pays 2 crowns. Adults pay 5 crowns at the machine. The tram is green.")
TOLD = "An adult pays 5 crowns, at the machine."


def answer(model: Scripted, history: tuple[Turn, ...] = (), question_type: str = "direct") -> Turn:
    hits = [Hit(passage_id=BUS.id, score=1.5, rank=1, new=True)]
    turn: Turn = model.run(
        lambda: Answer().acall((TRAM, BUS), history, Asked("Is it late?", "", "tram late", hits), KINDS[question_type])
    )
    return turn
