"""Read the directives of reStructuredText that Docutils doesn't know, such as Sphinx' `confval` and `versionadded`.

What they hold is text of the page, and what they name is mostly its heading. Sphinx itself would want the whole
project.
"""

import re
from types import MappingProxyType
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.parsers.rst.languages import en

_USE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([A-Za-z][\w.:+-]*?)::(?:\s|$)", re.MULTILINE)
# By the last part of their names (`py:function`).
NO_TEXT = frozenset(
    (
        "autosummary bibliography digraph graph graphviz index inheritance-diagram mermaid plantuml plot "
        "productionlist tabularcolumns toctree uml"
    ).split()
)
PROGRAMS = frozenset(
    (
        "code code-block code-cell code-tab doctest ipython jupyter-execute prompt testcleanup testcode testoutput "
        "sourcecode testsetup"
    ).split()
)
_SETTINGS = frozenset(["cssclass", "grid", "ifconfig", "only", "tab-set"])  # what they name is nothing to read
_SENTENCES = frozenset(["centered", "seealso", "todo"])  # what stands beside them is their content
_VERSIONS = MappingProxyType(
    {
        "deprecated": "Deprecated since version",
        "versionadded": "Added in version",
        "versionchanged": "Changed in version",
        "versionremoved": "Removed in version",
    }
)


class _AnyOption(dict[str, Any]):
    def __missing__(self, _: str) -> Any:
        return directives.unchanged


class Unknown(Directive):
    """A directive that Docutils doesn't know: what it names, as a paragraph, and then its content."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = _AnyOption(name=directives.unchanged)

    def run(self) -> list[nodes.Node]:
        name, named = self.name.rpartition(":")[2].lower(), " ".join(" ".join(self.arguments).split())
        if name in NO_TEXT:
            return []
        if name in PROGRAMS:
            return [nodes.literal_block("", "\n".join(self.content), classes=["code"])]
        if name in _VERSIONS:
            version, _, rest = named.partition(" ")
            named = f"{_VERSIONS[name]} {version}{':' if rest else '.'} {rest}".strip()
        elif name in _SETTINGS or (not self.content and name not in _SENTENCES):
            named = ""
        inside = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, inside)
        parsed, _ = self.state.inline_text(named, self.lineno)
        return [*([nodes.paragraph(named, "", *parsed)] if named else []), *inside.children]


def know_directives(text: str) -> None:
    """Have Docutils read the directives of a page that it doesn't know."""
    for name in {found.lower() for found in _USE.findall(text)} - en.directives.keys():
        directives.register_directive(name, Unknown)
