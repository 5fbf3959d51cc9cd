"""The screen that a terminal shows: 40 lines of 160 columns, as the open corpora have them."""

import codecs

import pyte

LINES, COLUMNS = 40, 160


class Display:
    """Renders a program's output as a screen; equal bytes give equal screens."""

    def __init__(self) -> None:
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, output: bytes) -> None:
        """Processes output; a character may be split between two calls."""
        self._stream.feed(self._decoder.decode(output))

    @property
    def text(self) -> str:
        """The lines without spaces at their ends, and without empty lines at the bottom."""
        return "\n".join(map(self._line, range(LINES))).rstrip("\n")

    def _line(self, number: int) -> str:
        # `Screen.display` looks at all 6,400 cells, most of which are unused.
        cells = self._screen.buffer[number]
        return "".join(cells[column].data for column in range(max(cells, default=-1) + 1)).rstrip()
