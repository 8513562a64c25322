"""Saved attention maps: the record, the table and the arrays hold the weights of the trace."""

import dataclasses
import json

import numpy as np
import pytest

from bert_tf.explain.attention.attention_maps import AttentionMaps, HeadAttention
from tests.conftest import make_bert

ROWS, COLUMNS = (1, 2, 4), (0, 2, 3, 5)


@pytest.fixture(scope="module")
def trace():
    return make_bert(seed=1).trace("the cat sat on the mat", attentions=True)


def test_chosen_heads_keep_every_weight_and_count_from_0(trace):
    result = HeadAttention(
        trace=trace, layers=(1, 0), heads=(0, 1), positions=ROWS, attended_positions=COLUMNS, threshold=0.2
    )
    weights = trace.attentions[[1, 0], [0, 1]][:, ROWS][:, :, COLUMNS]
    arrays, record, table = result.to_arrays(), json.loads(json.dumps(result.to_dict())), result.to_frame()
    np.testing.assert_array_equal(arrays["weights"], weights)
    np.testing.assert_allclose(record["weights"], weights, atol=1e-7)
    names = [f"{position} {trace.tokens[position]}" for position in COLUMNS]
    np.testing.assert_array_equal(table[names], weights.reshape(-1, len(COLUMNS)))
    assert record["layers"] == arrays["layers"].tolist() == [1, 0] and record["heads"] == arrays["heads"].tolist()
    assert list(zip(table["layer"], table["head"])) == [(1, 0)] * 3 + [(0, 1)] * 3
    assert list(table["position"]) == [*ROWS, *ROWS] and record["attended_positions"] == list(COLUMNS)
    assert list(table["token"][:3]) == record["tokens"] == [trace.tokens[position] for position in ROWS]
    assert "threshold" not in record and "trace" not in record


def test_all_heads_of_a_long_text_are_pooled_in_the_record_and_the_table_alone():
    trace = make_bert(seed=1).trace("the cat sat on the mat " * 4, attentions=True)
    tokens = tuple(range(trace.length))

    class Small(AttentionMaps):
        most_tokens = 6

    result = Small(trace=trace, positions=tokens, attended_positions=tokens)
    np.testing.assert_array_equal(result.to_arrays()["weights"], trace.attentions)
    record, table, layers = result.to_dict(), result.to_frame(), len(trace.attentions)
    starts = [index * trace.length // 6 for index in range(6)]
    assert record["positions"] == record["attended_positions"] == starts == list(table["position"][:6])
    block = trace.attentions[0, 0, starts[1] : starts[2], starts[2] : starts[3]]
    assert record["weights"][0][0][1][2] == pytest.approx(block.max(), abs=1e-6)
    assert np.shape(record["weights"]) == (*trace.attentions.shape[:2], 6, 6)
    assert len(table) == layers * trace.attentions.shape[1] * 6 and table.shape[1] == 4 + 6


def test_both_figures_leave_out_what_is_below_the_threshold(trace):
    result = HeadAttention(
        trace=trace, layers=(1,), heads=(0,), positions=ROWS, attended_positions=COLUMNS, threshold=0.15
    )
    drawn = result.figure("heatmap", dark=True).data[0].z
    weights = trace.attentions[1, 0][np.ix_(ROWS, COLUMNS)]
    np.testing.assert_array_equal(np.isnan(drawn), weights < np.float32(0.15))
    assert list(result.figures) == ["heatmap", "all-heads"] and result.figure("all-heads").data


def test_a_weight_that_is_no_number_is_null_in_the_record(trace):
    weights = trace.attentions.copy()
    weights[1, 0, 1, 0] = np.nan
    broken = dataclasses.replace(trace, attentions=weights)
    result = HeadAttention(trace=broken, layers=(1,), heads=(0,), positions=ROWS, attended_positions=COLUMNS)
    assert result.to_dict()["weights"][0][0][0] is None
    assert result.to_dict()["weights"][0][0][1] == pytest.approx(trace.attentions[1, 0, 1, 2], abs=1e-7)
