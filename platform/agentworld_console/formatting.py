"""Names, digests and addresses on a page."""

from urllib.parse import quote

from agentworld.records.report import Estimate


def brief(digest: str | None) -> str:
    """A short form of a digest for people."""
    return digest.removeprefix("sha256:")[:12] if digest else "none"


def shorten(text: str, most_letters: int = 15) -> str:
    """The start and the end of a text; either may distinguish it from similar ones."""
    if len(text) <= most_letters:
        return text
    end = (most_letters - 1) * 3 // 7
    return f"{text[: most_letters - 1 - end]}\N{HORIZONTAL ELLIPSIS}{text[-end:]}"


def with_interval(estimate: Estimate) -> str:
    """A mean with its 95 % interval."""
    return f"{estimate.mean:.3f} ({estimate.low:.2f} to {estimate.high:.2f})"


def page_path(*parts: str) -> str:
    """The address of a page."""
    return "/" + "/".join(quote(part.encode("utf-8", "surrogatepass"), safe="@:") for part in parts)
