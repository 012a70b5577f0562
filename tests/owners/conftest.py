"""Puts this folder on the path, as the tests of it share `driven.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
