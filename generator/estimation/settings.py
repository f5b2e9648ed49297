"""The plain settings of `python -m generator.estimate`; light to import, for `--help`."""

from typing import Annotated

from pydantic import Field

from generator.schema import LocalPath, Operational, Record


class EstimateSettings(Record):
    """Settings of `python -m generator.estimate` beside those of the run: measurement, throughput and prices."""

    preview: Annotated[int | None, Operational] = Field(
        ge=5,
        description="Attempt so many dialogs first and reckon with what they took; they stay in the run folder, and "
        "the run continues them. null: none.",
    )
    earlier_run: Annotated[LocalPath | None, Operational] = Field(
        description="Folder of a run with the same algorithm, `algorithm.reasoning` and judge, whose costs are "
        "reckoned with; null: those of this run, if it has begun."
    )
    tokens_per_s: Annotated[float | None, Operational] = Field(
        gt=0, description="Completion tokens a second that the server gives to all calls together; null: as measured."
    )
    calls_per_min: Annotated[float | None, Operational] = Field(
        gt=0, description="Calls a minute, such as a provider's limit; null: no such limit."
    )
    prices: Annotated[LocalPath | None, Operational] = Field(
        description="JSON file with prices by model, in the form of LiteLLM's table, which has the other models' (from "
        "its package); null: that table's alone."
    )
