"""Predictions as text for a terminal: aligned columns and bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_tf.inference.answer import Answer

#: Width of a bar in characters.
BAR = 30
_EIGHTHS = " ▏▎▍▌▋▊▉"


def cut_note(tokens_a: int, tokens_b: int) -> str:
    """A sentence: how many tokens of each text the model did not read."""
    return f"Cut off at the end: {tokens_a:,} tokens of text A, {tokens_b:,} of text B."


def bar(share: float, width: int = BAR) -> str:
    """A bar of block characters for a share between 0 and 1, exact to an eighth of a column."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def table(rows: Iterable[Sequence[str]], aligns: str) -> list[str]:
    """Formats rows as lines with aligned columns.

    Args:
        rows: sequences of str of the same length.
        aligns: str. "<" or ">" for each column.

    Returns: list of str, a line for each row.

    Example:

    ```python
    table([("a", "1"), ("long", "22")], "<>")  # ["a      1", "long  22"]
    ```
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(f"{cell:{a}{w}}" for cell, a, w in zip(row, aligns, widths)).rstrip() for row in rows]


def answer_lines(answer: Answer, seconds: float | None = None, note: str | None = None) -> list[str]:
    """Formats an `Answer` as lines of text.

    Args:
        answer: `Answer`. The predictions.
        seconds: float. The time of the forward pass, or None.
        note: str. The last line, or None.

    Returns: list of str.
    """
    duration = "" if seconds is None else f" · {seconds * 1000:.0f} ms"
    lines = [f"{answer.model} · {len(answer.tokens)} tokens{duration}", " ".join(answer.tokens)]
    if any(answer.truncated):
        lines.append(cut_note(*answer.truncated))
    for mask in answer.masks:
        lines += ["", _mask_title(mask)]
        ranked = [*enumerate(mask.predictions, 1), *((target.rank, target) for target in mask.targets)]
        rows = table(
            [(f"{rank:>4,}", p.token, percent(p.probability), bar(p.probability)) for rank, p in ranked], "><><"
        )
        lines += rows[: len(mask.predictions)]
        lines += ["Asked about:", *rows[len(mask.predictions) :]] if mask.targets else []
    if answer.word_scores:
        lines += [
            "",
            "Asked about, words of several pieces: pseudo-log-likelihood in nats, each piece predicted while the",
        ]
        lines += ["others are visible. Compare it with words of as many pieces, not with a probability."]
        scores = [
            (
                f"   {score.word}",
                " ".join(score.pieces),
                f"at {score.positions[0]}",
                f"{score.pseudo_log_likelihood:.2f}",
            )
            for score in answer.word_scores
        ]
        lines += table(scores, "<<<>")
    if answer.nsp is not None:
        lines += ["", "Does the second text follow the first?"]
        shares = (("    yes", answer.nsp.is_next), ("    no", answer.nsp.not_next))
        lines += table([(label, percent(share), bar(share)) for label, share in shares], "<><")
    if answer.sop is not None:
        lines += ["", "Are the two texts in the right order?"]
        shares = (("    yes", answer.sop.in_order), ("    swapped", answer.sop.swapped))
        lines += table([(label, percent(share), bar(share)) for label, share in shares], "<><")
    if answer.replaced is not None:
        lines += ["", "Which tokens were probably replaced?"]
        scored = zip(answer.tokens, answer.replaced, strict=True)
        lines += table([("   ", token.strip(), percent(share), bar(share)) for token, share in scored], "<<><")
    return lines if note is None else [*lines, "", note]


def _mask_title(mask):
    if mask.original is None:
        return f"[MASK] at token {mask.position}"
    return (
        f'[MASK] at token {mask.position}, in place of "{mask.original}" '
        f"(rank {mask.original_rank:,}, {percent(mask.original_probability)})"
    )


def percent(share: float) -> str:
    """A share as a percentage with one decimal; below 0.1% as a fraction with two significant digits."""
    return f"{share:.1%}" if share >= 0.001 else f"{share:.2g}".replace("e-0", "e-")


def size(count: float) -> str:
    """A number of bytes with its unit: 440449768 as "440 MB"."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"
