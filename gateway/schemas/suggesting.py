"""Finds the word that was probably meant, for the "did you mean" of a refusal.

Pure text; knows no field.
"""

import difflib
from collections.abc import Iterable
from typing import Final

LOOSE: Final = 0.6
"""Enough to suggest a word once the one written is refused anyway."""
NEAR: Final = 0.85
"""Enough to refuse an unknown word as a typo where unknown words are allowed."""
UNEXPANDED: Final = "a variable was left unexpanded: run envsubst or fill it in"
"""Hint on a text that still holds a dollar sign."""


def closest(word: str, known: Iterable[str], cutoff: float = LOOSE) -> str:
    """Give the known word nearest to this one; empty when none is near.

    Words that differ only in case, dashes or underscores win over words that merely look alike.
    """
    words = list(map(str, known))
    near = _spelled_alike(word, words) or difflib.get_close_matches(word, words, 1, cutoff)
    return next(iter(near), "")


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Give a hint that names the nearest word, or the other hint when none is near."""
    near = closest(word, known)
    return f"did you mean {near!r}?" if near else otherwise


def _spelled_alike(word: str, words: list[str]) -> list[str]:
    folded = _fold(word)
    return [each for each in words if _fold(each) == folded]


def _fold(word: str) -> str:
    return word.replace("-", "").replace("_", "").lower()
