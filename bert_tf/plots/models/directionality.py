"""What readers of one side and of both expect in one place, as a figure."""

from bert_tf.plots.predictions import predictions


def reader_predictions(result, dark=False):
    """The predictions of each reader of a ``Directionality``."""
    names = [f"{one.model}, {one.attention_direction.replace('_', ' ')}" for one in result.readers]
    return predictions([one.answer for one in result.readers], names=names, dark=dark)
