"""Texts that a model may write to break out of the page, and a reader that notices if one did."""

from __future__ import annotations

from html.parser import HTMLParser

H = "window.hit=1"
PAYLOADS = [
    # elements, and ways out of the one around them
    f"<script>{H}</script>",
    f"</script><script>{H}</script>",
    f"</title><script>{H}</script>",
    f"</textarea><script>{H}</script>",
    f"</pre><img src=x onerror={H}>",
    f"</code></pre></section></main><script>{H}</script>",
    f"</style><script>{H}</script>",
    f"</option></select><img src=x onerror={H}>",
    f"</td></tr></table><img src=x onerror={H}>",
    f"</a><img src=x onerror={H}>",
    f"</noscript><img src=x onerror={H}>",
    f"</svg><img src=x onerror={H}>",
    f"<ScRiPt>{H}</sCrIpT>",
    f"<script/x>{H}</script/y>",
    f"<script\n>{H}</script\t\n>",
    f"<scr<script>ipt>{H}</scr</script>ipt>",
    f"<<script>{H}//<</script>",
    f"<script>{H}",
    f"<script src=data:text/javascript,{H}></script>",
    "<script src=//example.invalid/x.js></script>",
    f"<script type=module>{H}</script>",
    "<script src=/static/../api/models></script>",
    "<link rel=stylesheet href=//example.invalid/x.css>",
    "<link rel=preload as=image href=//example.invalid/x.png>",
    "<link rel=dns-prefetch href=//example.invalid>",
    "<base href=//example.invalid>",
    "<meta http-equiv=refresh content='0;url=//example.invalid'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{H}'>",
    "<form action=//example.invalid><input name=x>",
    f"<form><button formaction=javascript:{H}>press</button></form>",
    f"<isindex type=image src=1 onerror={H}>",
    f"<object data=javascript:{H}></object>",
    f"<object data='data:text/html,<script>parent.{H}</script>'></object>",
    f"<embed src=javascript:{H}>",
    f"<iframe src=javascript:{H}></iframe>",
    f"<iframe srcdoc='<script>parent.{H}</script>'></iframe>",
    "<iframe src=//example.invalid></iframe>",
    f"<portal src=javascript:{H}></portal>",
    f"<template><script>{H}</script></template>",
    f"<dialog open><script>{H}</script></dialog>",
    # event handlers
    f"<img src=x onerror={H}>",
    f"<img/src=x/onerror={H}>",
    f"<img src=x OnErRoR={H}>",
    f"<img src=x onerror\n=\n{H}>",
    f"<img src=`x` onerror={H}>",
    f"<image src=x onerror={H}>",
    f"<video><source onerror={H}></video>",
    f"<video src=x onerror={H}>",
    f"<audio src=x onerror={H}>",
    f"<body onload={H}>",
    f"<body onpageshow={H}>",
    f"<input autofocus onfocus={H}>",
    f"<select autofocus onfocus={H}>",
    f"<textarea autofocus onfocus={H}>",
    f"<details open ontoggle={H}>",
    f"<marquee onstart={H}>x</marquee>",
    f"<div onpointerenter={H} style=position:fixed;inset:0>x</div>",
    f"<a onmouseover={H} href=#>x</a>",
    f"<x onanimationstart={H} style=animation-name:beat>",
    f"<x contenteditable onfocus={H} tabindex=1 autofocus>",
    # out of an attribute
    f'"><img src=x onerror={H}>',
    f"'><svg onload={H}>",
    f'" autofocus onfocus="{H}',
    f"' onmouseover='{H}",
    f'" onload={H} x="',
    f"` onerror={H} `",
    f'" srcdoc="<script>parent.{H}</script>',
    f'"/><script>{H}</script><a x="',
    f"x onerror={H}",
    '"=><b>',
    # addresses
    f'<a href="javascript:{H}">x</a>',
    f"javascript:{H}",
    f"JaVaScRiPt:{H}",
    f"java\tscript:{H}",
    f"&#106;avascript:{H}",
    f" \x01javascript:{H}",
    f"javascript://example.invalid/%0a{H}",
    f"data:text/html,<script>opener.{H}</script>",
    f"vbscript:{H}",
    "//example.invalid/%2e%2e",
    # SVG and MathML
    f"<svg onload={H}>",
    f"<svg><script>{H}</script></svg>",
    f"<svg><script href=data:,{H} /></svg>",
    f"<svg><animate onbegin={H} attributeName=x dur=1s>",
    f"<svg><a xlink:href=javascript:{H}><text y=20>x</text></a></svg>",
    f"<svg><foreignObject><img src=x onerror={H}></foreignObject></svg>",
    "<svg><image href=//example.invalid/x.png></svg>",
    "<svg><use href=//example.invalid/x.svg#y></svg>",
    f"<svg><style><img src=x onerror={H}></style></svg>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={H}>",
    f"<math href=javascript:{H}>x</math>",
    f"<![CDATA[<script>{H}</script>]]>",
    # style
    "<style>body{display:none}</style>",
    "<style>@import '//example.invalid/x.css'</style>",
    '<p style="background:url(//example.invalid/x.png)">x</p>',
    "<div style=position:fixed;inset:0;background:red>x</div>",
    f"expression({H})",
    # templates and markup of others
    "{{ 7*7 }} {% raw %}",
    "{{ request.app.state.authority._token }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "${7*7} #{7*7} <%= 7*7 %>",
    f"[x](javascript:{H})",
    f'![x](x"onerror="{H})',
    f"```\n</code></pre><img src=x onerror={H}>\n```",
    # what browsers read differently
    f"<!--><script>{H}</script>-->",
    f"<!--`<img src=x onerror={H}>-->",
    f'<?xml version="1.0"?><script>{H}</script>',
    f"&lt;script&gt;{H}&lt;/script&gt;",
    f"&#60;script&#62;{H}&#60;/script&#62;",
    f"%3Cscript%3E{H}%3C/script%3E",
    f"\\u003cscript\\u003e{H}\\u003c/script\\u003e",
    f"\x00<script\x00>{H}</script>",
    f"<scr\u202eipt>{H}</scr\u202eipt>",
    f"\u202e<script>{H}</script>\u202c",
    f"\u2066\u2067<img src=x onerror={H}>\u2069",
    f"\uff1cscript\uff1e{H}\uff1c/script\uff1e",
    f"\ufeff<script>{H}</script>",
    f"\u2028{H}\u2029",
    f"+ADw-script+AD4-{H}+ADw-/script+AD4-",
    f"\x1b[2J\x1b]0;x\x07<script>{H}</script>",
    f"\ufffd\ufffd<script>{H}</script>",
    f"<scr\u200bipt>{H}</scr\u200bipt>",
    f"\u017fcript <\u017fcript>{H}</\u017fcript>",
    "a\u0301\u0302\u0303" + "\u0335" * 30 + "<b>",
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
