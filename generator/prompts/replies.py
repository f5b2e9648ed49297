"""Read a reply into the fields of its signature: its JSON schema, the object in its text, and what is wrong with it."""

import json
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from math import exp
from typing import Annotated, Any, Literal, get_origin

from dspy.utils.exceptions import AdapterParseError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from generator.errors import ModelError
from generator.models.lm import LOGPROBS_REMEDY, NO_LOGPROBS
from generator.prompts.signatures import any_letters

SignatureType = Any  # type[dspy.Signature]; DSPy carries no types, and mypy won't hash a type[Any]
EVIDENCE = "evidence"
CUT_OFF = "it has no end"
FILTERED = "the server's content filter stopped it"
EMPTY = "the reply is empty"
# Outputs that hold what users and agents say, and keys of the records in a list that do.
SPOKEN = ("question", "answer", "turns")
_SPOKEN_IN_RECORDS = ("user", "agent", "request")
# Outputs of judges, which may think again behind the first.
_VERDICTS = ("label", "score")
_ENDS = frozenset(".!?…。！？؟।\"”»)]'’`")
_REPLY_CONFIG = ConfigDict(extra="ignore", title="Reply")


def read_reply(signature: SignatureType, completion: str) -> dict[str, Any]:
    """Return the fields of the JSON object in `completion`.

    Raises:
        AdapterParseError: there is none, it or what is said in it is cut off, or a field is out of bounds; says which
            and why.
    """
    try:
        data = _shorten(signature, _find_object(completion, signature.output_fields.keys()))
        # Through JSON again, which refuses the lone surrogates that an escape can produce.
        reply = _reply_model(signature).model_validate_json(json.dumps(data))
    except ValidationError as error:
        problems = [": ".join(filter(None, [".".join(map(str, e["loc"])), e["msg"]])) for e in error.errors()]
        raise unusable(signature, completion, "; ".join(problems)) from None
    except (ValueError, RecursionError) as error:  # a small model can open brackets endlessly
        raise unusable(signature, completion, f"not a whole JSON object ({error})") from None
    if cut := _find_cut(reply):
        raise unusable(signature, completion, f"{cut}: too long, so that it has no end; write it shorter")
    return {name: getattr(reply, name) for name in signature.output_fields}


def _shorten(signature: SignatureType, data: dict[str, Any]) -> dict[str, Any]:
    """Return a reply whose texts and lists that nobody says are cut to their bounds, as a schema with bounds has it."""
    for name, field in signature.output_fields.items():
        longest, value = bound_of(field, "max_length"), data.get(name)
        plain = isinstance(value, str) or (isinstance(value, list) and not any(isinstance(v, dict) for v in value))
        if longest and plain and (name not in SPOKEN or _is_draft(name, signature.output_fields)):
            data[name] = data[name][:longest]
    return data


def _is_draft(name: str, fields: Collection[str]) -> bool:
    """Return whether a field is the answer by which a question is checked, which nobody says."""
    return name == "answer" and "question" in fields


@lru_cache(maxsize=1024)
def _reply_model(signature: SignatureType) -> type[BaseModel]:
    """Return the output fields of a signature, with their bounds, as one pydantic model."""
    fields: dict[str, Any] = {
        name: (Annotated[field.annotation, Field(), *field.metadata, *_lenient(field.annotation)], ...)
        for name, field in signature.output_fields.items()
    }
    return create_model("Reply", __config__=_REPLY_CONFIG, **fields)


def _join_lines(value: Any) -> Any:
    lines = isinstance(value, list) and value and all(isinstance(line, str) for line in value)
    return " ".join(value) if lines else value


def _read_number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and re.fullmatch(r"\s*\d+(\.\d+)?\s*", value) else value


def _lenient(annotation: Any) -> tuple[BeforeValidator, ...]:
    """Return what takes lines for a text, digits for a number and other letters for a choice, as without a schema."""
    if get_origin(annotation) is Literal:
        return (any_letters(annotation),)
    read = {str: _join_lines, int: _read_number, float: _read_number}.get(annotation)
    return (BeforeValidator(read),) if read else ()


@lru_cache(maxsize=1024)
def _schema(signature: SignatureType) -> dict[str, Any]:
    """Return the JSON schema of a reply: every key required, and no other allowed."""
    schema: dict[str, Any] = _reply_model(signature).model_json_schema()
    for node in (schema, *schema.get("$defs", {}).values()):
        node |= {"required": list(node["properties"]), "additionalProperties": False}
    return schema


def limited_schema(signature: SignatureType, shown: int) -> dict[str, Any]:
    """Return the JSON schema of a reply with its evidence limited to the `shown` sentence numbers of the prompt.

    A signature with that limit would need new pydantic models in most calls, the slowest part of a call.
    """
    numbers = {"type": "integer", "minimum": 1, "maximum": shown}

    def limit(node: dict[str, Any]) -> dict[str, Any]:
        fields = node["properties"]
        if EVIDENCE not in fields:
            return node
        return {**node, "properties": {**fields, EVIDENCE: {**fields[EVIDENCE], "items": numbers}}}

    schema = _schema(signature)
    records = {name: limit(node) for name, node in schema.get("$defs", {}).items()}
    return limit(schema) | ({"$defs": records} if records else {})


def check_evidence(signature: SignatureType, text: str, reply: dict[str, Any], shown: int) -> dict[str, Any]:
    """Return the reply if its evidence is among the `shown` sentences of the prompt."""
    records = [part for value in reply.values() if isinstance(value, list) for part in value]
    numbers = [*reply.get(EVIDENCE, ()), *(n for record in records for n in getattr(record, EVIDENCE, ()))]
    if wrong := [number for number in numbers if not 1 <= number <= shown]:
        raise unusable(signature, text, f"{EVIDENCE}: there is no sentence {wrong[0]}, only 1 to {shown}")
    return reply


def _find_object(completion: str, names: Collection[str]) -> dict[str, Any]:
    """Return the first JSON object that has one of the keys `names`, whatever prose and braces surround it.

    Raises:
        ValueError: there is none, or another one behind it has another verdict.
    """
    decoder, errors = json.JSONDecoder(strict=False), list[ValueError]()
    fitting, objects = list[dict[str, Any]](), list[dict[str, Any]]()
    verdict = next((name for name in _VERDICTS if name in names), None)
    for brace in re.finditer("{", completion):
        try:
            data, _ = decoder.raw_decode(completion, brace.start())
        except ValueError as error:
            errors.append(error)
            continue
        (fitting if any(name in data for name in names) else objects).append(data)
        if fitting and verdict is None:
            break
    if fitting:
        if any(verdict in other and other[verdict] != fitting[0].get(verdict) for other in fitting[1:]):
            raise ValueError(f'it has more than one "{verdict}"')
        return dict(fitting[0])
    if errors and completion.count("{") > completion.count("}"):
        raise ValueError(CUT_OFF)
    if errors:
        raise errors[0]
    if not objects:
        raise ValueError("there is none" if completion.strip() else EMPTY)
    return dict(objects[0])


def _find_cut(reply: BaseModel) -> str | None:
    """Return the field with something said that has all of its characters and no end: structured output stops there."""
    fields = type(reply).model_fields
    for name, field in fields.items():
        value, longest = getattr(reply, name), bound_of(field, "max_length")
        if name in SPOKEN + _SPOKEN_IN_RECORDS and isinstance(value, str) and not _is_draft(name, fields):
            if longest and len(value) >= longest and value[-1] not in _ENDS:
                return name
        elif isinstance(value, list):
            records = (part for part in value if isinstance(part, BaseModel))
            if cut := next(filter(None, map(_find_cut, records)), None):
                return cut
    return None


def read_p_yes(signature: SignatureType, text: str, likely: Sequence[tuple[str, float]]) -> float:
    """Return how probable Yes is as a reply, 0 to 1, if it has to be Yes or No.

    Args:
        likely: the first tokens that the model may write, with their log probabilities.

    Raises:
        ModelError: the server tells none.
        AdapterParseError: neither word is among them.
    """
    if not likely:
        raise ModelError(f"{NO_LOGPROBS}: {LOGPROBS_REMEDY}")
    yes, no = (sum(exp(log) for token, log in likely if token.strip().casefold() == word) for word in ("yes", "no"))
    if not yes + no:
        raise unusable(signature, text, "neither Yes nor No is a likely reply")
    return yes / (yes + no)


def unusable(signature: SignatureType, completion: str, problem: str) -> AdapterParseError:
    """Return the error for a reply, whose first line is the problem."""
    return AdapterParseError("SharedPrefixAdapter", signature, completion, message=problem)


def bound_of(field: FieldInfo, name: str) -> Any:
    """Return a bound of a field, such as its `max_length`; None if it has none."""
    return next((getattr(m, name) for m in field.metadata if hasattr(m, name)), None)
