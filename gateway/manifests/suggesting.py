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


def closest(word: str, known: Iterable[str], cutoff: float = LOOSE) -> str:
    """Give the known word nearest to this one; empty when none is near.

    Words that differ only in case, dashes or underscores win over words that merely look alike.
    """
    words = [str(each) for each in known]
    folded = [each for each in words if _fold(each) == _fold(word)]
    return next(iter(folded or difflib.get_close_matches(word, words, n=1, cutoff=cutoff)), "")


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Give a hint that names the nearest word, or the other hint when none is near."""
    near = closest(word, known)
    return f"did you mean {near!r}?" if near else otherwise


def _fold(word: str) -> str:
    return word.replace("-", "").replace("_", "").lower()
