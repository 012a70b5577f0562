"""Named: a model by its name, also one that is given its tools in text.

Neighbours: `treadle.models.names`, which knows the providers; `treadle.models.text_tools`.
"""

from typing import TYPE_CHECKING, Final, NamedTuple, Unpack

from treadle.models.http_model import HttpOptions
from treadle.models.names import UnknownModel
from treadle.models.names import model_from_name as served
from treadle.models.port import Model

if TYPE_CHECKING:
    from treadle.models.text_tools import FormatName

TEXT: Final = "text"


class InText(NamedTuple):
    """A name of a model that is given its tools in text: the format, and the name of the model itself."""

    format: "FormatName"
    name: str

    def around(self, model: Model) -> Model:
        """`model`, its tools in text, under a name by which it is found again when a run is taken up."""
        from treadle.models.text_tools import TextTools

        return TextTools(model, self.format, name=f"{TEXT}:{self.format}:{self.name}")


def model_from_name(name: str, **options: Unpack[HttpOptions]) -> Model:
    """The model that `name` names.

    Args:
        name: "text:provider:model", or "text:FORMAT:provider:model", for a model that is given its tools in text (see
            `TextTools`); else as `treadle.models.names` has it: "provider:model", or "provider/model", with a provider
            of the table in `treadle.models.providers`, "local:model@http://host:port/v1" for any compatible server, or
            "offline" for the planner that needs no key and no network.
        options: see `HttpOptions`; "offline" takes none.

    Raises:
        UnknownModel: there is no such provider, or the name has another form; the message says what there is.
        MissingKey: the provider needs a key, and there is none.
    """
    inner = in_text(name)
    return served(name, **options) if inner is None else inner.around(served(inner.name, **options))


def in_text(name: str) -> InText | None:
    """What a name that begins with "text:" says; None for any other. Raises `UnknownModel` if it names no model."""
    label, _, rest = name.partition(":")
    if label != TEXT:
        return None
    from treadle.models.text_tools import FORMATS

    first, _, after = rest.partition(":")
    found = InText(first, after) if first in FORMATS else InText("json", rest)
    if not found.name or found.name.partition(":")[0] == TEXT:
        raise UnknownModel(
            f"{name!r} names no model; write text:PROVIDER:MODEL, or text:FORMAT:PROVIDER:MODEL with a format of "
            f"{', '.join(FORMATS)}, such as text:tags:ollama:qwen3"
        )
    return found
