"""Letters of a picture: five pixels high, three wide, drawn twice as large."""

from __future__ import annotations

SCALE = 2
WIDTH, HEIGHT = 4 * SCALE, 5 * SCALE  # of a letter with the gap after it

# Rows from top to bottom, each three pixels as a digit of base 8.
_GLYPHS = {
    "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717",
    "6": "74757", "7": "71222", "8": "75757", "9": "75717", "-": "00700", ":": "02020",
    ".": "00002", "a": "03557", "c": "03443", "d": "11355", "e": "07743", "i": "20222",
    "k": "45655", "m": "05755", "n": "06555", "o": "02552", "r": "05644", "s": "03613",
    "t": "27223", "l": "62227", "u": "05557",
}  # fmt: skip


def text_width(text: str) -> int:
    """Pixels."""
    return WIDTH * len(text)


def draw_text(
    lines: list[bytearray], x: int, y: int, text: str, colour: tuple[int, int, int]
) -> None:
    """Put letters on rows of RGB pixels, the upper left corner at (x, y); what has no shape is blank."""
    for at, letter in enumerate(text):
        for row, digit in enumerate(_GLYPHS.get(letter, "00000")):
            for column in range(3):
                if int(digit) & (4 >> column):
                    left = 3 * (x + at * WIDTH + column * SCALE)
                    for line in lines[y + row * SCALE : y + (row + 1) * SCALE]:
                        line[left : left + 3 * SCALE] = bytes(colour) * SCALE
