"""Markdown of problem statements as HTML: paragraphs, lists, tables and code, with mathematics marked for the browser.

Statements come from files of others, so everything that could link, load or carry markup is off: raw HTML, links, images,
and every attribute. Only the tags that the renderer itself writes come out; all text is escaped. The only module that
imports `markdown_it`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import unescape

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

MAX_CHARS = 20_000
UNSAFE = ("html_block", "html_inline", "link", "image", "autolink", "reference")
_MARK, _END = "\ue000", "\ue001"
_PLACE = re.compile(f"{_MARK}(\\d+){_END}")
_TEX = re.compile(
    r"\$\$\$(?P<a>[^$]{1,2000}?)\$\$\$|\$\$(?P<block>[^$]{1,4000}?)\$\$|\\\[(?P<display>.{1,4000}?)\\\]"
    r"|\\\((?P<b>.{1,2000}?)\\\)|(?<![\\$\w])\$(?P<c>[^$\n]{1,1000}?)(?<!\\)\$(?![\d$])",
    re.DOTALL,
)
"""`$$$x$$$` is how one contest site writes what others write as `$x$`."""
_FENCE = re.compile(r"(^ {0,3}(?P<fence>```+|~~~+)[^\n]*\n.*?(?:^ {0,3}(?P=fence)|\Z)|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


_ENTITY = re.compile(r"&(?:lt|gt|le|ge|ne|amp|quot|apos|nbsp|#39|#34|#60|#62);")
"""Statements that were HTML have these also in code, where Markdown leaves them as they are."""


def render(text: str) -> Markup:
    """HTML that is safe to show. A text that is too long is cut."""
    formulas: list[tuple[str, str]] = []

    def keep(match: re.Match[str]) -> str:
        block = match["block"] or match["display"]
        formulas.append(("block" if block else "inline", block or match["a"] or match["b"] or match["c"]))
        return f"{_MARK}{len(formulas) - 1}{_END}"

    plain = text[:MAX_CHARS].replace(_MARK, "").replace(_END, "")
    parts = _outside_code(plain)
    source = "".join(part if code else _TEX.sub(keep, part) for code, part in parts)
    parser = _parser()
    tokens = parser.parse(source)
    _strip(tokens)
    html = _PLACE.sub(lambda match: _formula(formulas, int(match[1])), parser.renderer.render(tokens, parser.options, {}))
    return Markup(html)  # noqa: S704


def _outside_code(text: str) -> list[tuple[bool, str]]:
    """The text in pieces: (whether it is code, piece)."""
    pieces: list[tuple[bool, str]] = []
    end = 0
    for match in _FENCE.finditer(text):
        pieces += [(False, text[end : match.start()]), (True, match[0])]
        end = match.end()
    return [*pieces, (False, text[end:])]


def _formula(formulas: Sequence[tuple[str, str]], number: int) -> str:
    if number >= len(formulas):
        return ""
    kind, source = formulas[number]
    return f'<span data-math="{kind}">{escape(source.strip())}</span>'


def _strip(tokens: Sequence[Token]) -> None:
    """Removes every attribute: alignment of tables would be an inline style, names of languages would be classes."""
    for token in tokens:
        token.attrs.clear()
        if token.type in ("code_inline", "fence", "code_block"):
            token.content = _ENTITY.sub(lambda match: unescape(match[0]), token.content)
        token.info = ""
        if token.tag in ("h1", "h2", "h3"):
            token.tag = "h4"  # below the headings of the page
        _strip(token.children or ())


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "typographer": False, "breaks": True}
    return MarkdownIt("commonmark", options).enable("table").disable(UNSAFE)
