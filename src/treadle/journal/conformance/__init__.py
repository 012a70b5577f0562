"""What every journal promises, as tests: subclass `JournalConformance`, `SharedJournalConformance` or
`LeasesConformance` for your own.

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
        for name in ("agreeing", "appending", "leasing", "listing", "sharing", "watching")
    )
)

from treadle.journal.conformance.suite import (  # noqa: E402
    JournalConformance,
    LeasesConformance,
    SharedJournalConformance,
)

__all__ = ["JournalConformance", "LeasesConformance", "SharedJournalConformance"]
