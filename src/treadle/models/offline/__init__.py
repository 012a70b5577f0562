"""A deterministic planner behind the Model port: treadle's main job without a key or a network.

`OfflineModel` is the only public name. Inside are three rooms, each of which knows only those before it: `grammar`
(what a question says), `plan` (what to call for it) and `answer` (what to say). `model` takes a request through them.
"""

from treadle.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
