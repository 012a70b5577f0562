"""Draws docs/loop.svg, the picture of a run, from the table of transitions that the kernel goes by.

Only the places of the boxes are decided here; which boxes and arrows there are, and what they are called, is what
`treadle.kernel.fold.TRANSITIONS` says. A test compares the file with what this draws.
"""

from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from treadle.kernel.fold import TRANSITIONS

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "loop.svg"


class Box(NamedTuple):
    """A box by its centre and its size."""

    x: float
    y: float
    width: float
    height: float


PLACES = {
    "new": Box(70, 270, 90, 44),
    "ready": Box(320, 270, 190, 72),
    "prepared": Box(690, 270, 190, 72),
    "acting": Box(505, 100, 250, 104),
    "replied": Box(505, 440, 170, 56),
    "paused": Box(990, 190, 110, 44),
    "finished": Box(990, 350, 110, 44),
}
ALONG = {("acting", "replied"): 0.25, ("finished", "ready"): 0.15}
"""How far along an arrow its events stand, where they would hide others in the middle."""
UNDER_WAY = ("ready", "prepared", "acting", "replied")
FRAME = Box(505, 270, 600, 490)

STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2933; text-anchor: middle }
  .phase { font-weight: 600; font-size: 15px }
  .stays { font-size: 11px; fill: #52606d }
  .event { font-size: 12px; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round }
  .box { fill: #eef4fb; stroke: #3b6ea5; stroke-width: 1.5 }
  .last { stroke-width: 3 }
  .frame { fill: none; stroke: #9fb3c8; stroke-width: 1.2; stroke-dasharray: 6 5 }
  .arrow { fill: none; stroke: #3b6ea5; stroke-width: 1.5; marker-end: url(#head) }
"""


def draw() -> str:
    """The picture, as SVG."""
    missing = TRANSITIONS.keys() ^ PLACES.keys()
    if missing:
        raise SystemExit(
            f"scripts/diagram.py has no place for, or no longer needs one for: {', '.join(sorted(missing))}"
        )
    shapes = [*frame(), *arrows(), *boxes()]
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1070 540" role="img" aria-labelledby="title">',
            '<title id="title">The phases of a run and the events that lead from one to another</title>',
            f"<style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 10 5 0 10z" fill="#3b6ea5"/></marker></defs>',
            '<rect width="1070" height="540" rx="12" fill="#ffffff"/>',
            *shapes,
            "</svg>\n",
        ]
    )


def edges() -> dict[tuple[str, str], list[str]]:
    """For each phase and each phase that it may lead to, the names of the events that do."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for phase, row in TRANSITIONS.items():
        for event, transition in row.items():
            for target in transition.leads_to:
                found[phase, target].append(event.__name__)
    return found


def shared() -> dict[tuple[str, str], list[str]]:
    """The edges between a phase outside the frame and every phase inside it, with the events that all of them share."""
    found = {}
    for outside in PLACES.keys() - set(UNDER_WAY):
        out = [edges().get((phase, outside), []) for phase in UNDER_WAY]
        back = [edges().get((outside, phase), []) for phase in UNDER_WAY]
        found["frame", outside] = [event for event in out[0] if all(event in events for events in out)]
        found[outside, "frame"] = [event for event in back[0] if all(event in events for events in back)]
    return {edge: events for edge, events in sorted(found.items()) if events}


def boxes() -> Iterator[str]:
    """A box for each phase: its name, and the events that leave it as it is."""
    for phase, box in PLACES.items():
        last = "" if TRANSITIONS[phase] else " last"
        yield rectangle(box, f"box{last}", 10)
        stays = edges().get((phase, phase), [])
        lines = [", ".join(stays[i : i + 2]) for i in range(0, len(stays), 2)]
        top = box.y + 5 - 7 * len(lines)
        yield f'<text class="phase" x="{box.x:g}" y="{top:g}">{phase}</text>'
        for number, line in enumerate(lines, start=1):
            yield f'<text class="stays" x="{box.x:g}" y="{top + 2 + 14 * number:g}">{escape(line)}</text>'


def frame() -> Iterator[str]:
    """The frame around the phases of a run that is under way."""
    yield rectangle(FRAME, "frame", 14)
    left, top = FRAME.x - FRAME.width / 2, FRAME.y - FRAME.height / 2
    yield f'<text class="stays" x="{left + 50:g}" y="{top + 22:g}">under way</text>'


def arrows() -> Iterator[str]:
    """An arrow for each edge, those that all phases under way share drawn once, from the frame or to it."""
    common = shared()
    places = PLACES | {"frame": FRAME}
    drawn = dict(common)
    for (phase, target), events in edges().items():
        inside = "frame" if phase in UNDER_WAY else phase, "frame" if target in UNDER_WAY else target
        own = [event for event in events if event not in common.get(inside, [])]
        if own and phase != target:
            drawn[phase, target] = own
    for (phase, target), events in drawn.items():
        shift = 14 if (target, phase) in drawn else 0
        yield from arrow(places[phase], places[target], events, shift, ALONG.get((phase, target), 0.5))


def arrow(start: Box, end: Box, events: list[str], shift: float, along: float) -> Iterator[str]:
    """An arrow between the edges of two boxes, moved aside by `shift` where another comes the other way."""
    # From or to the frame, an arrow is level with the box outside of it.
    y_start, y_end = (end.y, end.y) if start is FRAME else (start.y, start.y) if end is FRAME else (start.y, end.y)
    dx, dy = end.x - start.x, y_end - y_start
    length = (dx * dx + dy * dy) ** 0.5
    aside_x, aside_y = dy / length * shift, -dx / length * shift
    from_start, from_end = reach(start, dx, dy), reach(end, dx, dy)
    x1, y1 = start.x + dx * from_start + aside_x, y_start + dy * from_start + aside_y
    x2, y2 = end.x - dx * from_end + aside_x, y_end - dy * from_end + aside_y
    yield f'<path class="arrow" d="M{x1:.0f} {y1:.0f} {x2:.0f} {y2:.0f}"/>'
    for number, event in enumerate(events):
        y = y1 + (y2 - y1) * along - 6 + 14 * (number - (len(events) - 1) / 2) + (18 if shift and dx < 0 else 0)
        yield f'<text class="event" x="{x1 + (x2 - x1) * along:.0f}" y="{y:.0f}">{escape(event)}</text>'


def reach(box: Box, dx: float, dy: float) -> float:
    """Which share of the way (dx, dy) from a box's centre lies inside the box."""
    across = box.width / 2 / abs(dx) if dx else float("inf")
    down = box.height / 2 / abs(dy) if dy else float("inf")
    return min(across, down)


def rectangle(box: Box, kind: str, radius: int) -> str:
    """A box's outline."""
    return (
        f'<rect class="{kind}" x="{box.x - box.width / 2:g}" y="{box.y - box.height / 2:g}" '
        f'width="{box.width:g}" height="{box.height:g}" rx="{radius}"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"wrote {PICTURE}")
