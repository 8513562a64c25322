"""Training phases: short sequences first, long sequences at the end.

Source: Devlin et al. 2019, section A.2, with 128 tokens for 90% of the steps.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """A part of a training: updates `first` + 1 to `last` with sequences of `length` tokens.

    Attributes:
        length: int. Tokens of a sequence.
        first: int. The number of updates before the phase.
        last: int. The number of updates at its end.
    """

    length: int
    first: int
    last: int


def plan_phases(text: str | None, length: int, steps: int, longest: int) -> list[Phase]:
    """The phases of a training.

    Args:
        text: str. Tokens and share of the steps of each phase in order, like "128:0.9,512:0.1"; None for one phase.
        length: int. Tokens of a sequence if `text` is None.
        steps: int. The number of updates of the training.
        longest: int. The number of positions of the model.

    Returns: list of `Phase`, without phases shorter than one step.

    Raises: ValueError if the text has another form, if the shares do not add up to 1, or if the model cannot take a
        length.
    """
    pairs = [(length, 1.0)] if text is None else [_pair(part, text) for part in text.split(",")]
    total = sum(share for _, share in pairs)
    if abs(total - 1) > 1e-6:
        raise ValueError(f"The shares of --phases {text!r} add up to {total:g}; they must add up to 1.")
    for tokens, _ in pairs:
        if not 8 <= tokens <= longest:
            raise ValueError(
                f"Sequences of {tokens} tokens were asked for, and this model takes 8 to {longest}: give another "
                "--length, or other --phases."
            )
    phases, first, done = [], 0, 0.0
    for tokens, share in pairs:
        done += share
        last = round(done * steps)
        if last > first:
            phases.append(Phase(tokens, first, last))
        first = last
    return phases


def _pair(part, text):
    try:
        tokens, share = part.split(":")
        tokens, share = int(tokens), float(share)
    except ValueError:
        tokens = share = 0
    if not 0 < share <= 1:
        raise ValueError(f"--phases is {text!r}; write it as LENGTH:SHARE,LENGTH:SHARE, like 128:0.9,512:0.1.")
    return tokens, share
