"""Numbers in the form that figures and pages show."""


def percent(probability: float) -> str:
    """A probability as "46.1%"; near 1 as "> 99.9%" and near 0 as "< 0.1%".

    Args:
        probability: float. From 0 to 1.
    """
    if probability >= 0.9995:
        return "> 99.9%"
    return f"{100 * probability:.1f}%" if probability >= 0.001 else "< 0.1%"
