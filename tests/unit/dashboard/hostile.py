"""Texts that a model may write to break out of the page, and a reader that notices if one did."""

from __future__ import annotations

from html.parser import HTMLParser

PAYLOADS = [
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "</title><script>window.hit=1</script>",
    "</textarea><script>window.hit=1</script>",
    "</pre><img src=x onerror=window.hit=1>",
    '"><img src=x onerror=window.hit=1>',
    "'><svg onload=window.hit=1>",
    '" autofocus onfocus="window.hit=1',
    "' onmouseover='window.hit=1",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    '<a href="javascript:window.hit=1">x</a>',
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hit=1>",
    "<style>body{display:none}</style>",
    "<base href=//example.invalid>",
    "<meta http-equiv=refresh content='0;url=//example.invalid'>",
    "<form action=//example.invalid><input name=x>",
    "{{ 7*7 }} {% raw %}",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "<!--><script>window.hit=1</script>-->",
    "\x00<script\x00>window.hit=1</script>",
    "<scr\u202eipt>window.hit=1</scr\u202eipt>",
]
EVERYTHING = "\n".join(PAYLOADS)


class Structure(HTMLParser):
    """Elements and attributes as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.suspicious: list[str] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script":
            self.scripts.append(given.get("src") or "inline")
        if tag in ("iframe", "object", "embed", "base", "style", "math", "mglyph"):
            self.suspicious.append(tag)
        if tag == "meta" and "http-equiv" in given:
            self.suspicious.append("meta http-equiv")
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name.startswith("on") or name == "style":
                self.suspicious.append(f"{tag} {name}")
            if name in ("href", "src", "action") and (value or "").strip().lower().startswith(
                ("javascript:", "data:", "//", "http")
            ):
                self.suspicious.append(f"{tag} {name}={value}")


def assert_harmless(page: str) -> None:
    seen = Structure(page)
    assert seen.suspicious == []
    assert [script.rpartition("/")[2] for script in seen.scripts] == ["theme.js", "app.js"]
    assert len(seen.ids) == len(set(seen.ids)), [each for each in seen.ids if seen.ids.count(each) > 1]
