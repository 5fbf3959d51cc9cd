from collections.abc import Sequence
from threading import Event

import pytest

from agentworld.errors import StoreError
from agentworld.lineage.metric_log import MetricLog, Point
from waiting import wait_for


class Server:
    """A server that takes points, unless it is down."""

    def __init__(self) -> None:
        self.is_down = False
        self.points: list[Point] = []
        self.num_refused = 0
        self.ended: list[bool] = []

    def write(self, points: Sequence[Point]) -> None:
        if self.is_down:
            self.num_refused += 1
            raise StoreError("down", retryable=True)
        self.points += points

    def end(self, *, failed: bool) -> None:
        self.ended.append(failed)

    @property
    def steps(self) -> list[int]:
        return [point.step for point in self.points]


def test_metrics_are_logged_in_order_and_once() -> None:
    server = Server()
    with MetricLog(server, 0.001) as log:
        for step in range(100):
            log.add(step, {"loss": 1.5, "rate": 2.0})
    assert server.steps == [step for step in range(100) for _ in range(2)]
    assert server.points[0][:2] == ("loss", 1.5)
    assert server.ended == [False]


def test_metrics_of_an_outage_are_written_when_the_server_answers_again() -> None:
    server = Server()
    server.is_down = True
    with MetricLog(server, 0.001) as log:
        log.add(1, {"loss": 1.0})
        wait_for(lambda: server.num_refused > 1)
        log.add(2, {"loss": 1.0})
        server.is_down = False
        wait_for(lambda: len(server.points) > 1)
    assert server.steps == [1, 2]


def test_an_outage_of_the_server_does_not_end_a_training(caplog) -> None:
    server = Server()
    server.is_down = True
    with MetricLog(server, 0.001) as log:
        log.add(1, {"loss": 1.0})
    assert server.ended == []
    assert "the last figures of the training were not logged" in caplog.text


def test_a_failed_training_is_ended_as_failed() -> None:
    server = Server()

    def fail() -> None:
        with MetricLog(server, 60) as log:
            log.add(1, {"loss": 1.0})
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert server.ended == [True]


def test_a_training_without_metrics_does_not_use_the_server() -> None:
    server = Server()
    with MetricLog(server, 0.001):
        pass
    assert server.ended == []


def test_a_hanging_server_does_not_block_a_training() -> None:
    release, arrival = Event(), Event()

    class HangingServer(Server):
        def write(self, points: Sequence[Point]) -> None:
            arrival.set()
            release.wait()
            super().write(points)

    server = HangingServer()
    with MetricLog(server, 0.001) as log:
        log.add(1, {"loss": 1.0})
        arrival.wait()
        for step in range(2, 40):
            log.add(step, {"loss": 1.0})
        release.set()
    assert server.steps == [*range(1, 40)]


def test_a_long_outage_keeps_only_the_newest_metrics() -> None:
    server = Server()
    server.is_down = True
    with MetricLog(server, 60) as log:
        for step in range(30_000):
            log.add(step, {"loss": 1.0})
        server.is_down = False
    assert server.steps == [*range(10_000, 30_000)]
