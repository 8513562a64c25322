"""Short sequences first, long ones at the end (Devlin et al. 2019, section A.2: 128 tokens for 90% of the steps)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """Updates `first` + 1 to `last` with sequences of `length` tokens."""

    length: int
    first: int
    last: int


def plan_phases(text, length, steps, longest):
    """The phases of a training.

    Args:
        text: "128:0.9,512:0.1": tokens and share of the steps, in order; None for one phase of `length`.
        steps: updates in all. longest: tokens that the model has positions for.

    Returns: list of `Phase`, without those too short for a step.

    Raises: ValueError on something that is not so written, shares that do not add up to 1, or a length that the
        model cannot take.
    """
    pairs = [(length, 1.0)] if text is None else [_pair(part, text) for part in text.split(",")]
    total = sum(share for _, share in pairs)
    if abs(total - 1) > 1e-6:
        raise ValueError(f"The shares of --phases {text!r} add up to {total:g}; they must add up to 1.")
    for tokens, _ in pairs:
        if not 8 <= tokens <= longest:
            raise ValueError(f"Sequences of {tokens} tokens were asked for; this model takes 8 to {longest}.")
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
