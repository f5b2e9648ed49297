"""People's judgement: what they are asked, of which dialogs, how far they agree, and judges with them.

See `docs/human.md`; `judges.human` is the command.
"""

from typing import Literal

Unit = Literal["pairs", "dialogs"]
Stratum = Literal["source", "question_type", "turn", "answerability"]
