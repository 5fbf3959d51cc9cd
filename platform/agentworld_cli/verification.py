"""What a verification found: printed, and an exit code that tells a broken record."""

from typing import TYPE_CHECKING

from agentworld.errors import EvidenceError
from agentworld_cli.plain import plain
from agentworld_cli.show import show_record

if TYPE_CHECKING:
    from agentworld.audit.everything import Verification
    from agentworld.audit.verify import RunVerification
    from agentworld.audit.verify_episode import EpisodeVerification


def show_verification(found: "RunVerification | EpisodeVerification", *, as_json: bool) -> None:
    """Prints what was found; raises EvidenceError where the record is broken."""
    if as_json:
        show_record(found, as_json=True)
    else:
        for name, value in found.model_dump(mode="json", exclude={"problems", "notes"}).items():
            print(f"{name:<32} {plain(str(value))}")
        for note in getattr(found, "notes", ()):
            print(f"{'note':<32} {plain(note)}")
        for problem in found.problems:
            print(f"{'problem':<32} {plain(problem)}")
    if found.problems:
        raise EvidenceError(
            f"the record is not the one that was signed; its problems ({len(found.problems)}) are"
            " printed above"
        )


def show_everything(found: "Verification", *, as_json: bool) -> None:
    """A line for each problem, and how much was looked at; raises EvidenceError for any problem."""
    if as_json:
        show_record(found, as_json=True)
    else:
        for problem in found.problems:
            print(plain(problem))
        print(
            f"{len(found.runs)} runs and {len(found.versions)} versions, of which"
            f" {found.num_unsigned} unsigned; {len(found.problems)} problems"
        )
    if found.problems:
        raise EvidenceError(
            f"what is there is not what was signed; its problems ({len(found.problems)}) are"
            " printed above"
        )
