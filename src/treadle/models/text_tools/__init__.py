"""Text tools: tool calling for models that have none of their own, by a protocol in plain text.

`TextTools(model)` is a model around a model. Neighbours: `model.py` joins the parts; `history.py` writes a request as
text, `reader.py` reads the reply; `json.py`, `react.py` and `tags.py` are the formats, `own.py` is for one of your own,
`neighbours.py` finds calls in another form than the one asked for. Nothing here touches a network.
"""

from treadle.models.text_tools.model import FORMATS, FormatName, TextTools
from treadle.models.text_tools.own import TextFormat
from treadle.models.text_tools.pieces import Call, Fault, Offer, Piece, Prose, Thought

__all__ = ["FORMATS", "Call", "Fault", "FormatName", "Offer", "Piece", "Prose", "TextFormat", "TextTools", "Thought"]
