"""What every journal promises, as tests: subclass `JournalConformance`, `SharedJournalConformance` or
`LeasesConformance` for your own; with `Promising` beside it if it has `put`.

    from treadle.journal.conformance import JournalConformance

    class TestMine(JournalConformance):
        @pytest.fixture
        def journal(self):
            made = MyJournal(...)
            yield made
            asyncio.run(made.close())

Needs pytest, and nothing else: each test runs event loops of its own.
"""

import pytest

# So that what fails shows its values; it must come before the tests are loaded.
pytest.register_assert_rewrite(
    *(
        f"treadle.journal.conformance.{name}"
        for name in ("agreeing", "appending", "forking", "leasing", "listing", "promising", "sharing", "watching")
    )
)

from treadle.journal.conformance.promising import Promising  # noqa: E402 - as said above
from treadle.journal.conformance.suite import (  # noqa: E402 - as said above
    JournalConformance,
    LeasesConformance,
    SharedJournalConformance,
)

__all__ = ["JournalConformance", "LeasesConformance", "Promising", "SharedJournalConformance"]
