"""The clock of a process that waits for a lease, while its holder renews it."""

from agentworld.storage.folder import open_folder
from waiting import wait_for


class LeaseClock:
    """In place of the module `time`: every third pause lasts until the holder renewed the lease.

    So the lease does not lapse, however late the machine runs the holder.
    """

    def __init__(self, url: str) -> None:
        folder, _, self._name = url.rpartition("/")
        self._folder = open_folder(folder)
        self._now = 0.0
        self._num_pauses = 0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        self._num_pauses += 1
        if self._num_pauses % 3 == 0:
            before = self._folder.read(self._name)
            wait_for(lambda: self._folder.read(self._name) != before)
