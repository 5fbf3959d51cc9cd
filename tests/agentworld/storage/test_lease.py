import threading
import time

import pytest

from agentworld.errors import StoreError
from agentworld.storage.folder import open_folder
from agentworld.storage.lease import Lease
from make.lease_clock import LeaseClock

pytestmark = pytest.mark.waits  # a server of buckets, and waits

SECONDS = 0.5


@pytest.fixture
def url(bucket: str, tmp_path) -> str:
    return f"{bucket}/{tmp_path.name}/step.lease"


def lease(url: str) -> Lease:
    return Lease(url, "another process works on it", SECONDS)


def take_at_once(new_lease: Lease) -> None:
    """Takes a lease; fails if it has to wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda _seconds: pytest.fail("it waits"))
        new_lease.take()


def test_a_released_lease_is_acquired_at_once(url):
    first, second = lease(url), lease(url)
    first.take()
    first.release()
    take_at_once(second)
    second.check()


def test_a_renewed_lease_is_refused_to_a_second_process(url, monkeypatch):
    first, second = lease(url), lease(url)
    with first.hold():
        with monkeypatch.context() as patch:
            patch.setattr("agentworld.storage.lease.time", LeaseClock(url))
            with pytest.raises(StoreError, match="another process works on it"):
                second.take()
        first.check()
    take_at_once(second)


def test_a_killed_holder_loses_its_lease_after_its_duration(url):
    first, second = lease(url), lease(url)
    first.take()
    start = time.monotonic()
    second.take()
    assert time.monotonic() - start >= SECONDS
    with pytest.raises(StoreError):
        first.check()
    first.release()
    second.check()


def test_only_one_of_several_waiting_processes_acquires_a_lease(url):
    lease(url).take()
    acquired: list[Lease] = []

    def wait() -> None:
        candidate = lease(url)
        try:
            candidate.take()
            time.sleep(SECONDS / 5)
            candidate.check()
        except StoreError:
            return
        acquired.append(candidate)

    threads = [threading.Thread(target=wait) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    holder = open_folder(url.rpartition("/")[0]).read("step.lease").decode().split()[0]
    valid = [candidate for candidate in acquired if candidate._holder == holder]
    assert len(valid) == 1
