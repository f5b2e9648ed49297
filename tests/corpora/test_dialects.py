"""Markdown of documentation tools as documents."""

from pathlib import Path

import pytest

from generator.corpora.formats import TEXT_FORMATS
from tests.support.corpora import good, read


def read_text(page: str) -> str:
    """Return the text of a page of Markdown."""
    return TEXT_FORMATS["markdown"](page)[1]


def test_marks_of_documentation_tools_are_no_text(tmp_path: Path) -> None:
    tools = """\
# Ferries {#ferries}

!!! note "Seasons"
    The red route runs from **April** on.[^1]

    It stops in October.

???+ warning
    Storms stop all boats.
=== "Linux"

    Use the store.

    ```sh
    apt install ferry  # {% raw %}
    ```

:::tip Save money
Buy a ~~daily~~ *weekly* ticket.
:::

:::::{tab-set}
::::{tab-item} Dogs
:sync: dogs
Dogs pay half.
::::
:::::

```{note}
Bikes are free.
```

```{code-block} python
:linenos:
pay([^1])
```

```{r, echo=FALSE}
plot(1)
```

```{tip}
---
class: wide
---
Boats wait for {py:func}`~ferry.__len__` people.
```

```{toctree}
fares
```

> [!WARNING]
> The pier is closed.

- [ ] Bring food

Pier
: Where boats land.

1. ```
   pay({ref}`x`)
   ```

   ```
   === "A tab"
   ```

{% hint style="info" %}
Ask for `[^2]` at {ref}`the boat <boat>`, or `for {who}`.
{% endhint %}

import Map from './map.js';

{/* Not
shown. */}

```admonish tip title="Late boats"
The last boat waits.
```

{{#include fares.md}}

An underline
===

[^1]: On board only.
"""
    for name in ("a.mdx", "b.qmd", "c.Rmd"):
        (tmp_path / name).write_text(tools)
    document, *others = good(read("folder", path=str(tmp_path)))
    assert document.title == "Ferries" and [other.text for other in others] == [document.text] * 2
    assert document.text.split("\n\n") == [
        *("Seasons: The red route runs from April on.", "It stops in October.", "Warning: Storms stop all boats."),
        *("Linux: Use the store.", "```sh\napt install ferry  # {% raw %}\n```"),
        *("Save money", "Buy a daily weekly ticket.", "Dogs", "Dogs pay half.", "Bikes are free."),
        *("```python\npay([^1])\n```", "```text\nplot(1)\n```", "Boats wait for ferry.__len__ people."),
        *("Warning: The pier is closed.", "- Bring food", "Pier: Where boats land."),
        "```text\npay({ref}`x`)\n```",
        '```text\n=== "A tab"\n```',
        *("Ask for [^2] at the boat, or for {who}.", "Late boats", "The last boat waits."),
        *("# An underline", "On board only."),
    ]


def test_fences_that_nothing_closes_are_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ":::tip\nBring food.\n" * 9
    assert read_text(text) == "\n\n".join(["Bring food."] * 9)
    monkeypatch.setattr("generator.corpora.dialects._MOST_READ", 1)
    assert read_text(text).count(":::tip") and read_text(text).count("Bring food.") == 9, "the rest is a program"


def test_callouts_are_text() -> None:
    notion = "<aside>\n💡 Use the **blue** key.\n\n</aside>\n\nThe door is heavy."
    text = f'{notion}\n\n<Aside type="tip">\n\nKnock first.\n\n</Aside>\n\n    <aside>\n'
    assert read_text(text) == "💡 Use the blue key.\n\nThe door is heavy.\n\nKnock first.\n\n```text\n<aside>\n```"


def test_links_and_marks_of_wikis_are_read_and_short_codes_are_not() -> None:
    obsidian = "See [[Fees#Dogs|the fees]] and [[Dogs]]. ![[map.png]]\n\n> [!tip]- Quiet berths\n> The north quay.\n\n"
    kept = "==Moor== by day, if a == b and c == d, [[1]](n.md), `[[ -f x ]]` and [[1, 2], [3, 4]].\n\n"
    hugo = '{{< notice tip >}}\nBring [a cover]({{< ref "covers" >}}).\n{{% /notice %}}\n'
    assert read_text(obsidian + kept + hugo).split("\n\n") == [
        "See the fees and Dogs.",
        "Quiet berths: The north quay.",
        "Moor by day, if a == b and c == d, [1], [[ -f x ]] and [[1, 2], [3, 4]].",
        "Bring a cover.",
    ]


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("これは**「鍵」**です。**要確認。**次へ。", "これは「鍵」です。要確認。次へ。"),
        ("这是**“重点”**内容。", "这是“重点”内容。"),
        ("서울**(수도)**는 크다. **글(text)**은 굵다.", "서울(수도)는 크다. 글(text)은 굵다."),
        ("`f(**「鍵」**x)`の**「鍵」**", "f(**「鍵」**x)の「鍵」"),
    ],
)
def test_bold_print_beside_letters_without_spaces_leaves_no_marks(text: str, read_as: str) -> None:
    assert read_text(text).replace("`", "") == read_as
