"""Load languages, and keep which ones the current run is in.

A language without a file works, too: what would need its words isn't checked.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import yaml
from pydantic import ValidationError

from generator.common.context import bind
from generator.common.language_file import Language
from generator.errors import ConfigError, describe

P = ParamSpec("P")
T = TypeVar("T")


class Languages(NamedTuple):
    """The languages of a run: of its documents, and of its dialogs."""

    documents: Language
    dialog: Language

    @property
    def differ(self) -> bool:
        """True if no words of documents and dialogs can be compared."""
        return self.documents.code != self.dialog.code


def load_language(code: str, folder: Path | None = None) -> Language:
    """Return a language by its ISO 639 code, from `folder` or else ours; one that has no file knows no words.

    Raises:
        ConfigError: its file can't be used, or there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"dialog.languages={folder}: no such folder; give one with language files, such as sw.yaml")
    if folder is not None and (own := folder / f"{code}.yaml").is_file():
        return _read(code, own, check=True)
    return _load_ours(code)


@cache
def known_codes() -> frozenset[str]:
    """Return the codes of the languages that have a file of ours."""
    names = (file.name for file in files("generator.common").joinpath("languages").iterdir())
    return frozenset(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


@cache
def _load_ours(code: str) -> Language:
    path = Path(str(files("generator.common").joinpath("languages", f"{code}.yaml")))
    return _read(code, path) if path.is_file() else Language(code=code, name=f"the language with the code “{code}”")


def _read(code: str, path: Path, check: bool = False) -> Language:
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return Language.model_validate({"code": code, **found}, context=check)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: can't be read: {describe(error)}") from error
    except (yaml.YAMLError, TypeError) as error:
        raise ConfigError(f"{path}: is not a language file: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise ConfigError(f"{path}: {describe(error)}; see docs/languages.md") from None


ENGLISH = _load_ours("en")
IN_ENGLISH = Languages(ENGLISH, ENGLISH)
_current: ContextVar[Languages] = ContextVar("languages", default=IN_ENGLISH)


def languages() -> Languages:
    """Return the languages of the current context; English unless `use_languages` set others."""
    return _current.get()


def dialog_language() -> Language:
    """Return the language that users and agents of the current context speak."""
    return _current.get().dialog


def cached_by_language(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that keeps so many results of a function which depends on its arguments and `languages()`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        caches: dict[Languages, Any] = {}
        last: tuple[Languages | None, Any] = None, None  # to hash languages for each call would take as long

        @wraps(function)
        def look_up(*args: P.args, **kwargs: P.kwargs) -> T:
            nonlocal last
            of, (known, call) = _current.get(), last
            if of is not known:
                call = caches.setdefault(of, lru_cache(maxsize=maxsize)(function))
                last = of, call
            result: T = call(*args, **kwargs)
            return result

        return look_up

    return decorate


def use_languages(of: Languages) -> AbstractContextManager[Languages]:
    """Return a context in which documents and dialogs are in these languages, also for tasks and threads."""
    return bind(_current, of)
