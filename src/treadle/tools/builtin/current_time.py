"""The time of day, in any zone of the IANA time zone database."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import timezone as offset_zone
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from typing_extensions import TypedDict

from treadle.tools.errors import ToolError, did_you_mean, nearest
from treadle.tools.function import tool

_SOME = (
    "UTC",
    "Europe/London",
    "Europe/Berlin",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Tokyo",
    "Asia/Kolkata",
)


class Moment(TypedDict):
    """A moment in a time zone: in ISO 8601, and its parts."""

    timezone: str
    iso: str
    date: str
    time: str
    weekday: str
    utc_offset: str


@tool(effect="read", timeout=10.0)
async def current_time(timezone: str = "UTC") -> Moment:
    """Tells the current date, time of day and weekday.

    Args:
        timezone: an IANA time zone such as "Europe/Berlin", the name of its city, or an offset such as "UTC+2".
    """
    name, zone = _zone(timezone)
    now = datetime.now(zone)
    return {
        "timezone": name,
        "iso": now.isoformat(timespec="seconds"),
        "date": now.date().isoformat(),
        "time": now.strftime("%H:%M:%S"),
        "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[now.weekday()],
        "utc_offset": now.isoformat(timespec="seconds")[-6:],
    }


def _zone(given: str) -> tuple[str, tzinfo]:
    wanted = given.strip().replace(" ", "_").casefold()
    if wanted in ("utc", "", "z"):
        return "UTC", UTC
    if fixed := _offset(wanted):
        return str(fixed), fixed
    zones = _zones()
    if not zones:
        raise ToolError(
            "this machine has no time zone database; only UTC is known (pip install tzdata)", available=["UTC"]
        )
    exact = [zone for zone in zones if zone.casefold() == wanted]
    cities = [zone for zone in zones if zone.casefold().rpartition("/")[2] == wanted and "/" in zone]
    for found in (exact, cities):
        if len(found) == 1:
            return found[0], ZoneInfo(found[0])
    if cities:
        raise ToolError(
            f"the time zone {given[:80]!r} could be {' or '.join(cities[:5])}",
            argument="timezone",
            given=given[:80],
            nearest=cities[0],
            available=cities[:10],
        )
    like = _like(given, zones)
    raise ToolError(
        f"there is no time zone {given[:80]!r} (use an IANA name such as Europe/Berlin){did_you_mean(like)}",
        argument="timezone",
        given=given[:80],
        nearest=like,
        available=[like, *_SOME] if like is not None and like not in _SOME else list(_SOME),
    )


def _offset(wanted: str) -> offset_zone | None:
    """The zone of an offset as people write it: in the IANA's Etc/GMT+2 the sign is the other way round."""
    found = re.fullmatch(r"(?:utc|gmt)?_?([+-])(\d{1,2})(?::?([0-5]\d))?", wanted, re.ASCII)
    if found is None or int(found[2]) > 14:
        return None
    ahead = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return offset_zone(ahead if found[1] == "+" else -ahead)


@cache
def _zones() -> list[str]:
    """All names, in order; found once, as it means reading hundreds of directories and files."""
    return sorted(available_timezones())


def _like(given: str, zones: list[str]) -> str | None:
    whole = nearest(given, zones)
    if whole is not None:
        return whole
    cities = {zone.rpartition("/")[2]: zone for zone in zones if "/" in zone}
    city = nearest(given.rpartition("/")[2], cities)
    return cities[city] if city is not None else None
