"""Media: what the type and the address of a file tell, alike for the dialects that send files by their bytes.

Pure. Neighbours: the dialects.
"""

import re
from typing import Final

TEXTUAL: Final = re.compile(r"text/|application/(.*\+)?(json|xml|yaml|x-yaml|toml|javascript|sql|csv|x-ndjson|x-sh)\b")
"""The media types of files that are text, and can be sent as such."""

DATA_URL: Final = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
"""An address that holds the file: its media type, and its bytes in base64 (RFC 2397)."""
