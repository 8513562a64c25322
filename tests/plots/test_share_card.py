"""The picture to share: what it says, from the numbers of the trace."""

import re

import numpy as np

from bert_tf.inference.predictions import fill_mask
from bert_tf.plots.numbers import percent
from bert_tf.plots.share_card import HEIGHT, WIDTH, share_card
from bert_tf.plots.theme import escape


def _texts(card):
    return [re.sub(r"<[^>]*>", "", annotation.text) for annotation in card.layout.annotations]


def test_a_card_has_the_texts_the_predictions_the_pair_and_the_head(tiny_bert):
    trace = tiny_bert.trace("the cats sat", "the cat sat", mask=[2, 3], attentions=True)
    answers = fill_mask(trace, tiny_bert.tokenizer, 3)
    # The masks that were filled first come first: the card shows the first of the text.
    answers, first = answers[::-1], answers[0]
    card = share_card(trace, answers, trace.attentions[1, 2], "layer 2, head 3", "<Tiny>")
    output = _texts(card)
    assert (card.layout.width, card.layout.height) == (WIDTH, HEIGHT) == (1200, 630)
    assert output[:3] == ["the [MASK] sat", "the cat sat", "The first [MASK]:"]
    for prediction in first.predictions:
        assert prediction.token in output and escape(percent(prediction.probability)) in output
    assert f"B follows A: {escape(percent(trace.nsp.is_next))}" in output
    assert "Attention, layer 2, head 3" in output and "&lt;Tiny&gt; · BERT explorer" in output
    paths = [shape for shape in card.layout.shapes if shape.type == "path"]
    assert len(paths) == min(160, int((trace.attentions[1, 2] >= 0.02).sum()))


def test_lines_of_wide_characters_end_before_the_attention(tiny_bert):
    text = "北京是中华人民共和国的首都，也是[MASK]的政治、文化中心和国际交往中心，历史悠久。"
    trace = tiny_bert.trace(text, "the cat sat", attentions=True)
    output = _texts(share_card(trace, (), np.asarray(trace.attentions[0, 0]), "layer 1, head 1", "Tiny"))
    first_part = output[: output.index("the cat sat")]
    assert first_part[0] == "北京是中华人民共和国的首都，也是" and first_part[1].startswith("[MASK]的")
    assert "".join(first_part) == text and len(first_part) == 3


def test_a_long_text_is_cut_and_says_so(tiny_bert):
    trace = tiny_bert.trace("the cat sat " * 30, attentions=True)
    card = share_card(trace, (), np.asarray(trace.attentions[0, 0]), "layer 1, head 1", "Tiny")
    output = _texts(card)
    assert f"first 26 of {trace.length} tokens" in output and any(line.endswith(" …") for line in output)
    assert all(0 <= annotation.y <= HEIGHT for annotation in card.layout.annotations)
