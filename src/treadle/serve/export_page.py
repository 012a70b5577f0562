"""The page of a run: one HTML file with its whole story, to be opened offline, printed or sent. Pure.

Nothing is fetched and no script runs (the page forbids both to itself). What a model or a tool wrote is escaped; what
cannot be seen, or turns the writing direction, stands as an escape of its own.
"""

from datetime import UTC, datetime
from html import escape

import msgspec

from treadle.serve.export import Part, seen, story
from treadle.serve.views import Described

_LONG = 600
"""Characters of a result from which on it stays closed until somebody opens it."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b2021; --faint: #5d6667; --line: #dcdfdc; --stripe: #f2f4f1;
  --accent: #17645a; --wash: #e4f0ed }
@media (prefers-color-scheme: dark) { :root { --paper: #131617; --ink: #e8ecea; --faint: #a0aaa8; --line: #343b3b;
  --stripe: #212627; --accent: #6cc5b5; --wash: #1c3531 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem; max-width: 56rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.3rem; margin: 0 } h2 { font-size: .95rem; margin: 0; font-weight: 600 }
dl { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem } dt { font-size: .75rem; color: var(--faint) } dd { margin: 0 }
section { border-top: 1px solid var(--line); padding: .7rem 0 } summary { cursor: pointer; color: var(--faint) }
pre { white-space: pre-wrap; font: .85rem/1.5 ui-monospace, monospace; background: var(--stripe); border-radius: 6px;
  padding: .5rem .7rem; margin: .3rem 0 }
.question pre, .text pre { font: inherit } .text pre { background: none; padding: 0 }
.question pre { background: var(--wash) } .call h2 { color: var(--accent) } .result h2 { color: var(--faint) }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --faint: #444; --line: #bbb; --stripe: #f4f4f4 }
  @page { margin: 14mm } body { max-width: none; padding: 0; font-size: 10pt } h2 { break-after: avoid } }
"""


def as_html(found: Described) -> str:
    """A run as one page of HTML."""
    line, result = found.line, found.result
    title = _shown(line.question.strip()[:200] or line.run_id)
    began = datetime.fromtimestamp(line.started_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    facts = {
        "run": line.run_id, "agent": line.agent, "model": line.model, "began": began, "ended": result.stop.reason,
        "steps": f"{len(result.steps):,}", "tokens": f"{result.usage.total_tokens:,}",
        "cost": "unknown" if result.cost is None else f"${result.cost:f}",
    }  # fmt: skip
    told = "".join(f"<div><dt>{name}</dt><dd>{_shown(value)}</dd></div>" for name, value in facts.items())
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n<h1>{title}</h1>\n<dl>{told}</dl>\n{''.join(map(_section, story(found)))}</main>\n</body>\n"
        "</html>\n"
    )


def _section(part: Part) -> str:
    kind, heading, said = part
    text = f'<pre tabindex="0" dir="auto">{_shown(_laid_out(said) if kind in ("call", "result") else said)}</pre>'
    if kind == "result" and len(said) > _LONG:
        text = f"<details><summary>{len(said):,} characters</summary>{text}</details>"
    return f'<section class="{kind}">\n<h2>{_shown(heading)}</h2>\n{text}\n</section>\n'


def _laid_out(text: str) -> str:
    """JSON on lines, every digit as it stands; anything else as it is."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return text


def _shown(text: str) -> str:
    return escape(seen(text))
