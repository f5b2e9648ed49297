"""Check requests and replies against an OpenAPI 3.0 specification, strictly: a key that it doesn't name is an error."""

import re
from collections.abc import Collection
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

Json = dict[str, Any]
_URI = "urn:spec"


class Specification:
    """The paths of a specification.

    Its schemas become those of JSON Schema 2020-12, where `nullable` is a type, and objects are closed wherever they
    are used. `oneOf` is read as `anyOf`: alternatives that are open objects overlap. How many properties a part of an
    object has isn't checked, since those of all its parts would be counted.

    Args:
        paths: those to keep.
    """

    def __init__(self, content: Json, paths: set[str]) -> None:
        self._paths = {path: content["paths"][path] for path in paths}
        self._components = content["components"]
        converted = {"paths": _convert(self._paths, content), "components": _convert(self._components, content)}
        self._registry: Any = Registry().with_resource(_URI, Resource(converted, DRAFT202012))

    def operation(self, method: str, path: str) -> tuple[str, str]:
        """Return the method and the path of the specification that a request's path belongs to; fails without one."""
        for known, item in self._paths.items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/_][^/]*", known), path) and method.lower() in item:
                return known, method.lower()
        raise AssertionError(f"{method} {path}: not in the specification")

    def check_parameters(self, method: str, path: str, given: Collection[str]) -> None:
        """Fail unless the operation has all these parameters in its query."""
        known, name = self.operation(method, path)
        parameters = self._paths[known][name].get("parameters", ())
        refs = (self._components["parameters"][p["$ref"].rpartition("/")[2]] if "$ref" in p else p for p in parameters)
        assert set(given) <= {each["name"] for each in refs if each["in"] == "query"}, f"{method} {path}: {given}"

    def check_request(self, method: str, path: str, body: object) -> None:
        """Fail unless the body of a request is what its operation takes."""
        known, name = self.operation(method, path)
        given = self._paths[known][name].get("requestBody", {})
        if body is None:
            if "$ref" in given:
                given = self._components["requestBodies"][given["$ref"].rpartition("/")[2]]
            assert not given.get("required"), f"{method} {path}: has no body"
            return
        assert given, f"{method} {path}: takes no body"
        self._check(self._content(given, ["paths", known, name, "requestBody"]), body, f"{method} {path}")

    def check_reply(self, method: str, path: str, body: object) -> None:
        """Fail unless a reply with the status 200 is what its operation gives."""
        known, name = self.operation(method, path)
        given = self._paths[known][name]["responses"]["200"]
        self._check(self._content(given, ["paths", known, name, "responses", "200"]), body, f"reply to {method} {path}")

    def check(self, component: str, value: object) -> None:
        """Fail unless a value is of a schema among the components."""
        self._check(["components", "schemas", component], value, component)

    def _content(self, node: Json, place: list[str]) -> list[str]:
        if "$ref" in node:
            place = node["$ref"].removeprefix("#/").split("/")
        return [*place, "content", "application/json", "schema"]

    def _check(self, place: list[str], value: object, where: str) -> None:
        pointer = "/".join(part.replace("~", "~0").replace("/", "~1") for part in place)
        schema = {"$ref": f"{_URI}#/{pointer}", "unevaluatedProperties": False}
        for error in Draft202012Validator(schema, registry=self._registry).iter_errors(value):
            raise AssertionError(f"{where}: {error.json_path}: {error.message[:500]}")


def _convert(node: Any, spec: Json, closed: bool = False) -> Any:
    """Return a schema, or what holds schemas; a closed one refuses what it doesn't name."""
    if isinstance(node, list):
        return [_convert(each, spec) for each in node]
    if not isinstance(node, dict):
        return node
    made: Json = {}
    for key, value in node.items():
        if key in ("example", "examples", "description", "default", "externalDocs", "discriminator"):
            continue
        if key == "properties" and isinstance(value, dict):
            made[key] = {name: _convert(each, spec, closed=True) for name, each in value.items()}
        elif key in ("items", "additionalProperties"):
            made[key] = _convert(value, spec, closed=True)
        elif key == "allOf" and len(value) > 1:
            # The bound of one variant, as of `sparse_vector`'s `inference_id`, is rendered for the whole object.
            # A part of its own, as with the one `type` that it may have, is compared before those that nest further.
            parts = sorted(value, key=lambda part: "$ref" in part)
            made[key] = [_convert({k: v for k, v in part.items() if k != "maxProperties"}, spec) for part in parts]
        elif key == "$ref" and isinstance(value, str):
            made[key] = f"{_URI}{value}"
        else:
            made["anyOf" if key == "oneOf" else key] = _convert(value, spec)
    if made.pop("nullable", False):
        made = {"anyOf": [made, {"type": "null"}]}
    if closed and not _is_free(node, spec):
        made["unevaluatedProperties"] = False
    return made


def _is_free(schema: Json, spec: Json) -> bool:
    """Return whether a schema is an object of any shape, alone or among alternatives."""
    if "$ref" in schema:
        kind, name = schema["$ref"].removeprefix("#/components/").split("/", 1)
        return _is_free(spec["components"][kind][name], spec)
    parts = [part for key in ("allOf", "oneOf", "anyOf") for part in schema.get(key, ())]
    if parts:
        return any(_is_free(part, spec) for part in parts) and "properties" not in schema
    return not schema.get("properties") and schema.get("type", "object") == "object" and "enum" not in schema
