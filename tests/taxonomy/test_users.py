"""Files of user types, and their weights."""

from pathlib import Path

import pytest

from generator.errors import TaxonomyError
from taxonomy import PLAIN, load_users, read_users
from tests.support.taxonomy_files import refuse


def test_the_plain_user_changes_nothing() -> None:
    assert read_users()["plain"] == PLAIN and PLAIN.prompt() == "" and not PLAIN.switch


def test_every_other_user_tells_a_model_something_or_types_otherwise() -> None:
    users = [user for user in read_users().values() if user != PLAIN]
    assert len(users) >= 6 and all(user.prompt() or user.typing for user in users)
    assert len({user.prompt() for user in users}) == len(users)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: me\ntyping: [loud]", "2: typing.0: Input should be 'lower-case', 'typos', 'keywords' or 'long'"),
        ("name: me\nswitch: 2", "2: switch: Input should be less than or equal to 1"),
        ("name: me\nwho: 3", "2: who: Input should be a valid string; expected a sentence or two"),
        ("name: me\nwo: X", "2: unknown key 'wo'; did you mean 'who'?"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert refuse(read_users, tmp_path, text).startswith(f":{said}")


def test_an_unknown_user_is_one_line() -> None:
    with pytest.raises(TaxonomyError, match=r"^user\.types\.novise: unknown user type; did you mean 'novice'\?$"):
        load_users({"novise": 1.0}, None)


def test_a_user_of_ones_own_without_a_weight_is_refused(tmp_path: Path) -> None:
    (tmp_path / "me.yaml").write_text("name: me\nwho: The User is a nurse.", encoding="utf-8")
    with pytest.raises(TaxonomyError, match=r"^user\.path: me has no weight; set user\.types\.me=1"):
        load_users({"plain": 1.0}, tmp_path)
    assert [share.type.name for share in load_users({"me": 1.0}, tmp_path)] == ["me"]
