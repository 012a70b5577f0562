"""What the tests of context policies share: the validator of requests in tests/properties, and made-up histories."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "properties"))
sys.path.insert(0, str(Path(__file__).parent))
