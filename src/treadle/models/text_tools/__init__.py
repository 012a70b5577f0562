"""Text tools: tool calling for models that have none of their own, by a protocol in plain text.

`TextTools(model)` is a model around a model. Neighbours: `model.py` joins the parts; `history.py` writes a request as
text, `reader.py` reads the reply; `json.py`, `react.py` and `tags.py` are the formats. Nothing here touches a network.
"""

from treadle.models.text_tools.model import TextTools

__all__ = ["TextTools"]
