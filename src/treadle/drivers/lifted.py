"""Lifted: limits on money or tokens that do not hold for a run, as others were given in the place of all.

That may be meant, and it may be that somebody only wanted some steps more: so the log says it,
and standard error where nobody hears that.
"""

from treadle.aloud import aloud
from treadle.kernel.stop import Limits

log = aloud("treadle.runs")


def tell_lifted(run_id: str, before: Limits, given: Limits | None, where: str = "result.limits") -> None:
    """Says which of `before` do not hold for a run that is `given` others, which say nothing of these.

    Args:
        run_id: the run.
        before: the limits that would hold.
        given: what was given in their place, if it was.
        where: a program has `before` as this.
    """
    if given is None:
        return
    lifted = [f"{name}={value}" for name in ("usd", "tokens") if (value := _lifted(name, before, given)) is not None]
    if lifted:
        log.warning(
            "run %s goes without %s: the limits= that it was given take the place of all that it had. To keep that, "
            "change what there is: limits=msgspec.structs.replace(%s, steps=…)",
            run_id,
            " and ".join(lifted),
            where,
            extra={"run_id": run_id},
        )


def _lifted(name: str, before: Limits, given: Limits) -> object:
    return getattr(before, name) if getattr(given, name) is None else None
