"""Attention as lines in a notebook."""

import base64
import json
import re
from dataclasses import replace

import numpy as np


def drawn(trace):
    """The data that the drawing holds."""
    return json.loads(re.search(r"least} = (.*);\n", trace._repr_html_()).group(1))


def test_a_trace_shows_its_attention_in_a_notebook(tiny_bert):
    trace = tiny_bert.trace("the cat sat", "it ran")
    data = drawn(trace)
    weights = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(trace.attentions.shape) / 255
    np.testing.assert_allclose(weights, trace.attentions, atol=1 / 255)
    assert data["tokens"] == list(trace.tokens) and (data["layers"], data["heads"]) == trace.attentions.shape[:2]
    assert "<table" in replace(trace, attentions=None)._repr_html_()


def test_a_long_text_is_cut_and_its_tokens_are_no_markup(tiny_bert):
    trace = tiny_bert.trace("the cat sat " * 30)
    assert len(drawn(trace)["tokens"]) == 64 and f"The first 64 of {trace.length} tokens" in trace._repr_html_()
    evil = replace(trace, tokens=("</script><b>", *trace.tokens[1:]))
    assert "</script><b>" not in evil._repr_html_() and drawn(evil)["tokens"][0] == "</script><b>"
