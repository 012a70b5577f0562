"""A deterministic planner behind the Model port: treadle's main job without a key or a network.

`OfflineModel` is the only public name. Inside, in the order that a request passes through: `transcript` (what was
said), `toolbox` (what is offered), `followup` and `question` (what is asked), `choice`, `arguments` and `plan` (what to
call), `results` and `answer` (what to say). `words`, `english`, `arithmetic`, `periods`, `vocabulary`, `affinity` and
`structures` serve these.
"""

from treadle.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
