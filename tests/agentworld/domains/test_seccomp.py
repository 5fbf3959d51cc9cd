"""What the filter answers, on a machine that is simulated; the sandbox's tests ask the kernel."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.seccomp import filter_of
from agentworld.errors import SandboxUnavailable

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": {"clone": 56, "unshare": 272, "setns": 308, "clone3": 435},
    "aarch64": {"clone": 220, "unshare": 97, "setns": 268, "clone3": 435},
}
ALLOWED, KILLED = 0x7FFF0000, 0x80000000
NOT_PERMITTED, NOT_THERE = 0x50001, 0x50026
NEW_USER = 0x10000000

machines = pytest.mark.parametrize("machine", list(AUDIT))


def answer(machine: str, number: int, flags: int = 0, audit: int | None = None) -> int:
    """Runs the program as the kernel does."""
    program = list(struct.iter_unpack("=HBBI", filter_of(machine)))
    record = struct.pack("=IIQQ", number, audit or AUDIT[machine], 0, flags)
    at = accumulator = 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", record, value)
            continue
        holds = {
            0x15: accumulator == value,
            0x35: accumulator >= value,
            0x45: bool(accumulator & value),
        }
        at += yes if holds[code] else no


@machines
@pytest.mark.parametrize("call", ["unshare", "setns"])
def test_no_namespace_is_made_or_entered(machine, call):
    assert answer(machine, NUMBERS[machine][call]) == NOT_PERMITTED


@machines
@given(flags=st.integers(0, 2**32 - 1))
def test_a_clone_is_refused_where_it_asks_for_a_user_namespace_and_nowhere_else(machine, flags):
    wanted = NOT_PERMITTED if flags & NEW_USER else ALLOWED
    assert answer(machine, NUMBERS[machine]["clone"], flags) == wanted


@machines
def test_a_call_whose_flags_cannot_be_read_is_not_there(machine):
    assert answer(machine, NUMBERS[machine]["clone3"]) == NOT_THERE


@machines
@given(number=st.integers(0, 600), flags=st.integers(0, 2**32 - 1))
def test_every_other_call_is_allowed(machine, number, flags):
    if number not in NUMBERS[machine].values():
        assert answer(machine, number, flags) == ALLOWED


@machines
@given(number=st.integers(0x40000000, 2**32 - 1))
def test_the_second_table_of_calls_ends_the_process(machine, number):
    assert answer(machine, number) == KILLED


@machines
@given(number=st.integers(0, 600), audit=st.integers(1, 2**32 - 1))
def test_calls_of_another_machine_end_the_process(machine, number, audit):
    if audit != AUDIT[machine]:
        assert answer(machine, number, audit=audit) == KILLED


def test_a_machine_that_is_not_known_has_no_sandbox():
    with pytest.raises(SandboxUnavailable, match="riscv64 has no filter"):
        filter_of("riscv64")
