"""Makes what the property tests share importable: `toolbox.py`, `worlds.py` (what is generated), `rules.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
