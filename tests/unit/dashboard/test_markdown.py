"""Statements as HTML: what contest sites write, and nothing that could run, load or link."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest

from orchestrator.dashboard.rendering.markdown import MAX_CHARS, render
from tests.service.dashboard.hostile_texts import EVERYTHING, PAYLOADS

TAGS = {"p", "h4", "h5", "h6", "ul", "ol", "li", "em", "strong", "code", "pre", "br", "hr", "blockquote", "span"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(attrs)))


def assert_plain(html: str) -> None:
    for tag, attributes in Tags(html).seen:
        assert tag in TAGS, html
        assert attributes in ((), (("data-math", "inline"),), (("data-math", "block"),)), html


@pytest.mark.parametrize("text", [*PAYLOADS, EVERYTHING], ids=range(len(PAYLOADS) + 1))
def test_hostile_texts_stay_text(text: str) -> None:
    for form in (
        text,
        f"$${text}$$",
        f"${text}$",
        f"\\({text}\\)",
        f"```{text}\nx\n```",
        f"| a | b |\n|:-|-:|\n| {text} | 1 |",
    ):
        assert_plain(str(render(form)))


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "![x](http://elsewhere/x.png)",
        "<http://elsewhere>",
        "[x]: javascript:alert(1)\n\n[x]",
        "<img src=x onerror=alert(1)>",
        '```" onmouseover="alert(1)\nx\n```',
        "\ue0000\ue001 \ue00099\ue001",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ],
)
def test_links_images_and_attributes_are_off(text: str) -> None:
    assert_plain(str(render(text)))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Given $N$ and $a_i \\le 10^5$.", '<p>Given <span data-math="inline">N</span> and <span data-math="inline">a_i '),
        ("$$$n \\times m$$$", '<span data-math="inline">n \\times m</span>'),
        ("$$\\sum_i a_i$$", '<span data-math="block">\\sum_i a_i</span>'),
        ("\\[ x < y \\]", '<span data-math="block">x &lt; y</span>'),
        ("costs $5 and $6", "<p>costs $5 and $6</p>"),
        ("`$HOME` and `$x$`", "<code>$HOME</code> and <code>$x$</code>"),
        ("2 &le; n &amp; m", "2 ≤ n &amp; m"),
        ("`s[i] &lt; s[i+1]`", "<code>s[i] &lt; s[i+1]</code>"),
        ("```\ns = &quot;ab&quot; &amp;lt;\n```", "<pre><code>s = &quot;ab&quot; &amp;lt;"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "<table>"),
        ("# Title", "<h4>Title</h4>"),
        ("1 2\n3 4", "1 2<br />\n3 4"),
    ],
)
def test_what_contest_sites_write(text: str, html: str) -> None:
    assert html in str(render(text))


@pytest.mark.parametrize("piece", ["[", "*", "_", "> ", "`", "$", "- ", "![", "&", "\\(", "| a ", "~~~", "<!--", "$$"])
def test_no_text_takes_long(piece: str) -> None:
    """Not a measurement: what grows with the square of the length takes minutes here."""
    began = time.process_time()
    render(piece * (2 * MAX_CHARS // len(piece)))
    assert time.process_time() - began < 20
