"""The whole of what every journal promises."""

import pytest

from treadle.journal.conformance.agreeing import Agreeing
from treadle.journal.conformance.appending import Appending
from treadle.journal.conformance.forking import Forking
from treadle.journal.conformance.leasing import Leasing
from treadle.journal.conformance.listing import Listing
from treadle.journal.conformance.sharing import Sharing
from treadle.journal.conformance.wanting import Wanting
from treadle.journal.conformance.watching import Watching
from treadle.journal.port import Journal


class JournalConformance(Appending, Forking, Listing, Wanting, Watching, Agreeing):
    """The tests that a journal must pass, for a subclass whose name begins with "Test".

    Give it a fixture `journal`: a fresh journal with no runs, closed after the test.
    """

    @pytest.fixture
    def journal(self) -> Journal:
        """A fresh journal; to be given by the subclass."""
        raise NotImplementedError("give your subclass of JournalConformance a fixture named journal")


class SharedJournalConformance(JournalConformance, Sharing):
    """The same for a journal whose runs outlive it, and which several processes have at once.

    Give it a fixture `other` too: another object over the runs of `journal`, as another process has them.
    """

    @pytest.fixture
    def other(self) -> Journal:
        """Another object over the same runs; to be given by the subclass."""
        raise NotImplementedError("give your subclass of SharedJournalConformance a fixture named other")


class LeasesConformance(SharedJournalConformance, Leasing):
    """The same for one that knows which process drives a run; see `treadle.journal.Leases`."""
