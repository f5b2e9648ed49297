"""Clean a message of what small models put around it."""

import re

# “- Who …?”, “### Who …? ### When …?”; but “2. Weltkrieg” is a name.
_LISTED = re.compile(r"^(?:[-*•#]|1[.)]) |(?<!\S)#{2,6} ")
_MARKED = re.compile(r"""^(?:["“]|["“*`'‘]+(?=.*["”*`'’]$))((?:[^"“”*`'‘’]|(?<=\w)['’](?=\w))+)["”*`'’]*$""")


def on_one_line(text: str) -> str:
    """Return a text with single spaces in place of white space, without the commas that small models put around it."""
    return " ".join(text.split()).strip(" ,")


def unquote(message: str) -> str:
    """Return a message on one line, without what small models put around it, or only before it.

    That is a list's mark, quotation marks, and Markdown's for headings, bold text and code.
    """
    return _MARKED.sub(r"\1", _LISTED.sub("", on_one_line(message))).strip()
