"""Predictions as text for a person: aligned columns and bars."""

BAR = 30
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share, width=BAR):
    """A bar of block characters for a share between 0 and 1, exact to an eighth of a column."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def table(rows, aligns):
    """Lines of cells in columns as wide as they need to be.

    Args:
        rows: equally long sequences of str.
        aligns: "<" or ">" for each column.
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(f"{cell:{a}{w}}" for cell, a, w in zip(row, aligns, widths)).rstrip() for row in rows]


def answer_lines(answer, seconds=None, note=None):
    """An `Answer` as lines of text, `note` the last of them."""
    took = "" if seconds is None else f" · {seconds * 1000:.0f} ms"
    lines = [f"{answer.model} · {len(answer.tokens)} tokens{took}", " ".join(answer.tokens)]
    if any(answer.truncated):
        lines.append(f"Cut off at the end: {answer.truncated[0]} tokens of text A, {answer.truncated[1]} of text B.")
    for mask in answer.masks:
        lines += ["", _mask_title(mask)]
        ranked = [*enumerate(mask.predictions, 1), *((one.rank, one) for one in mask.targets)]
        rows = table(
            [(f"{rank:>4,}", p.token, percent(p.probability), bar(p.probability)) for rank, p in ranked], "><><"
        )
        lines += rows[: len(mask.predictions)]
        lines += ["Asked about:", *rows[len(mask.predictions) :]] if mask.targets else []
    if answer.nsp is not None:
        lines += ["", "Does the second text follow the first?"]
        shares = (("    yes", answer.nsp.is_next), ("    no", answer.nsp.not_next))
        lines += table([(label, percent(share), bar(share)) for label, share in shares], "<><")
    if answer.sop is not None:
        lines += ["", "Are the two texts in their order?"]
        shares = (("    yes", answer.sop.in_order), ("    swapped", answer.sop.swapped))
        lines += table([(label, percent(share), bar(share)) for label, share in shares], "<><")
    if answer.replaced is not None:
        lines += ["", "Which tokens look put there in the place of others?"]
        scored = zip(answer.tokens, answer.replaced, strict=True)
        lines += table([("   ", token.strip(), percent(share), bar(share)) for token, share in scored], "<<><")
    return lines + ["", note] * (note is not None)


def _mask_title(mask):
    if mask.original is None:
        return f"[MASK] at token {mask.position}"
    return (
        f'[MASK] at token {mask.position}, in place of "{mask.original}" '
        f"(rank {mask.original_rank:,}, {percent(mask.original_probability)})"
    )


def percent(share):
    """A share as a percentage with one decimal, or more where it is small."""
    return f"{share:.1%}" if share >= 0.001 else f"{share:.2g}".replace("e-0", "e-")


def size(count):
    """Bytes as a person reads them."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"
