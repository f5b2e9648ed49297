"""Read Markdown with what documentation tools add to it, so that no mark of theirs is taken for text.

Admonitions and tabs of MkDocs, directives of MyST, containers of Docusaurus and Quarto, alerts of GitHub, footnotes,
definition and task lists, callouts of Notion, links of Obsidian, and what of GitBook, Hugo, mdBook and MDX is no text.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.myst_role import myst_role_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from generator.corpora.directives import NO_TEXT, PROGRAMS

_TAB = re.compile(r'^( *)(?====[!+]? +".*"[ \t]*$)', re.MULTILINE)
_NOTE, _MARK = re.compile(r"^\[\^([\w.-]+)\]:[ \t]*", re.MULTILINE), re.compile(r"(?<=\S)\[\^([\w.-]+)\](?!:)")
_DIRECTIVE = re.compile(r"\{([\w:.-]+)\}\s*(.*)$")
_CONTAINER = re.compile(r"(?:\{[^}]*\}|[\w:.-]+)?\s*(.*?)\s*(?:\{[^}]*\})?$")
_ADMONISH = re.compile(r'admonish\b(?:.*\btitle="([^"]*)")?')  # of mdBook
_OPTIONS = re.compile(r"---\n(?:.*\n)*?---\n|(?:[ \t]*:[\w-]+:(?: .*)?\n)+")
_ALERT = re.compile(r"^\[!([\w-]+)\][+-]?(.*)$", re.MULTILINE)  # perhaps with a title
_ANCHOR = re.compile(r"\s*\{[#.:][^{}]*\}$")
_NO_TEXT = re.compile(
    r"^(?:\{%[^%\n]*%\}|import\s.+\sfrom\s+['\"].+['\"];?)$|\{/\*[\s\S]*?\*/\}|(?<!`)\{\{[<%][^{}\n]*[>%]\}\}"
    r"|(?<!`)\{\{#(?:include|playground|rustdoc_include|template|title)\s[^{}\n]*\}\}",
    re.MULTILINE,
)
# “![[map.png]]”, “[[Fees]]”, “[[Fees|the fees]]” and “==important==” of Obsidian.
_WIKI = re.compile(
    r"!\[\[[^\[\]\n]*\]\]|\[\[(?:[^\[\]|\n]+\|)?([^\[\]|\n]+)\]\]|(?<![=\w])==(?![\s=])([^=\n]+)==(?![=\w])"
)
# In “これは**「鍵」**です” CommonMark sees no bold print: between a letter and such a mark it wants a space.
_LETTER = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_BOLD = re.compile(rf"(?<={_LETTER})\*\*([^\w\s*](?:[^*\n]*[^\s*])?)\*\*|\*\*([^\s*][^*\n]*[^\w\s*])\*\*(?={_LETTER})")
# What Notion and MDX write notes as; in pages of HTML it is what stands beside the text. Notion's text follows at once,
# and would be no Markdown.
_ASIDE, _ASIDE_START = re.compile(r"(</?)aside\b", re.IGNORECASE), re.compile(r"^<aside>$", re.MULTILINE)
# Bound on the text parsed inside fences, in lengths of the page: thousands of unclosed fences would each be parsed to
# its end.
_MOST_READ = 50
_TARGET = re.compile(r"^[!~]|\s*<[^<>]*>$")
# Of MyST, beside those with a colon (`py:function`); any other fence with a name in braces is a program.
_TEXTS = frozenset(
    (
        "admonition attention card caution danger deprecated dropdown epigraph error exercise grid grid-item "
        "grid-item-card hint important margin note pull-quote seealso sidebar solution tab-item tab-set tip todo topic "
        "versionadded versionchanged warning"
    ).split()
)


def render_markdown(text: str) -> str:
    """Return a page in HTML, in which documentation tools' own marks are gone, and what these hold is text."""
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for plugin in (admon_plugin, colon_fence_plugin, deflist_plugin, myst_role_plugin, tasklists_plugin):
        reader.use(plugin)
    reader.core.ruler.after("block", "marks", _read_marks)
    reader.core.ruler.push("wiki", _read_links)
    reader.add_render_rule("myst_role", _render_role)
    text, notes = _NOTE.sub("", text), set(_NOTE.findall(text))
    text = _ASIDE_START.sub("<aside>\n", _TAB.sub(r"\1!!! ", text))  # a tab is read as an admonition
    return _ASIDE.sub(r"\1div", reader.render(text, {"notes": notes}))


def _read_marks(state: StateCore) -> None:
    """Put what directives hold in their place, and take marks out of the text."""
    waiting, state.tokens, left = state.tokens[::-1], [], _MOST_READ * len(state.src)
    while waiting:
        token = waiting.pop()
        if token.type == "inline":
            text = _ALERT.sub(lambda found: f"{found[2].strip() or found[1].title()}:", _NO_TEXT.sub("", token.content))
            text = _MARK.sub(lambda found: "" if found[1] in state.env["notes"] else found[0], text)
            token.content = _ANCHOR.sub("", text) if state.tokens[-1].type == "heading_open" else text
        elif token.type.endswith("fence") and left > 0 and (held := _open(token)) is not None:
            left -= len(held)
            tokens: list[Token] = []
            state.md.block.parse(held, state.md, state.env, tokens)
            waiting += tokens[::-1]
            continue
        elif token.type in ("fence", "code_block"):
            token.content = token.content.replace("!!! ===", "===")
        state.tokens.append(token)


def _read_links(state: StateCore) -> None:
    """Put what links of a wiki show, and what is bold, in their place."""
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "text":
                told = _BOLD.sub(lambda found: found[1] or found[2], child.content)
                child.content = _WIKI.sub(lambda found: found[1] or found[2] or "", told)


def _open(token: Token) -> str | None:
    """Return the text that a fence holds, or None where it is a program; of its first line only the language stays."""
    info, content = token.info.strip(), token.content
    if admonition := _ADMONISH.match(info):
        return f"{admonition[1] or ''}\n\n{content}"
    directive = _DIRECTIVE.match(info)
    name, rest = directive.groups() if directive else ("", "")
    last = name.rpartition(":")[2].lower()
    if last in NO_TEXT:
        return ""
    if directive and (options := _OPTIONS.match(content)):
        content = content[options.end() :]
    if last not in PROGRAMS and (token.type == "colon_fence" or last in _TEXTS or ":" in name):
        title = rest if directive else (_CONTAINER.match(info) or [""] * 2)[1].strip("[]\"'")
        return f"{title}\n\n{content}"
    token.type, token.content = "fence", content
    token.info = (rest if last in PROGRAMS else name) if directive else info
    return None


def _render_role(_: object, tokens: Sequence[Token], place: int, *_rest: Any) -> str:
    return escape(_TARGET.sub("", tokens[place].content))
