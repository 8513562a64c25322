"""Results that describe themselves, and the catalogue of analyses."""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from bert_tf.analyses import Call, analysis, catalogue
from bert_tf.analysis import Option
from bert_tf.errors import InputError
from bert_tf.explain import logit_lens
from bert_tf.results import Result, frame, frame_text, plain


@dataclass(frozen=True, eq=False)
class _Scores(Result, figures={"bars": "tests.test_results:_bars"}):
    layers: np.ndarray
    names: tuple
    secret: object = field(default=None, metadata={"export": False})

    def to_frame(self):
        return frame({"name": self.names, "score": self.layers})


def _bars(result, dark=False):
    return [dark, *result.names]


def test_a_result_gives_its_record_its_table_and_its_arrays():
    result = _Scores(np.array([0.5, np.nan]), ("a", "b"), secret=object())
    assert result.to_dict() == {"layers": [0.5, None], "names": ["a", "b"]}
    assert list(result.to_arrays()) == ["layers"]
    assert result.to_frame().to_dict("list")["name"] == ["a", "b"]
    assert result.to_text().splitlines()[1].split() == ["a", "0.5"]


@pytest.mark.parametrize("gap", [None, np.nan])
def test_whole_numbers_with_gaps_are_written_as_whole_numbers(gap):
    table = frame({"rank": [3, gap, np.int64(12)], "score": [3.0, gap, 12.0], "none": [gap] * 3})
    assert table.to_csv(index=False) == "rank,score,none\n3,3.0,\n,,\n12,12.0,\n"
    assert frame([{"rank": 3}, {"row": 1}]).to_csv(index=False) == "rank,row\n3,\n,1\n"
    assert frame_text(table).splitlines()[2].split() == ["-", "-", "-"]
    assert frame_text(frame({"word": ["cat", gap]})).splitlines()[2].split() == ["-"]

    class Ranks(Result):
        def to_frame(self):
            return table

    assert "NA" not in Ranks()._repr_html_() and "<td>3</td>" in Ranks()._repr_html_()


def test_a_table_without_rows_is_shown_as_a_sentence():
    assert frame_text(frame({"word": ["cat", "", None]})).split() == ["word", "cat", "-", "-"]
    assert frame_text(frame({"rank": [], "score": []})) == "The table has no rows."


def test_a_figure_is_found_by_name_and_drawn_when_asked_for():
    result = _Scores(np.zeros(2), ("a", "b"))
    assert result.figure(dark=True) == result.figure("bars", True) == [True, "a", "b"]
    with pytest.raises(ValueError, match="no figure 'map'; it has: bars"):
        result.figure("map")


def test_plain_values_are_what_json_takes():
    values = {"a": (1, np.int64(2), np.float32("inf")), 3: {None}, "nested": _Scores(np.ones(1), ("x",))}
    assert json.loads(json.dumps(plain(values), allow_nan=False)) == {
        "a": [1, 2, None],
        "3": [None],
        "nested": {"layers": [1.0], "names": ["x"]},
    }


@pytest.mark.parametrize("number", [0.0, 3.214e-9, -7.25e-12, 0.0123456789, 0.46123456789, 12345678.125])
def test_a_number_keeps_seven_digits_however_small_it_is(number):
    (written,) = plain(np.array([number]))
    assert written == pytest.approx(number, rel=1e-6, abs=0)
    assert len(repr(written)) <= 12


@pytest.mark.parametrize("name", list(catalogue()))
def test_an_analysis_is_found_by_its_name_and_its_aliases(name):
    record = analysis(name)
    assert record.name == name and all(analysis(alias) is record for alias in record.aliases)
    assert record.summary[0].isalpha()
    assert not record.summary.endswith(".")
    assert len({option.name for option in record.options}) == len(record.options)


def test_an_unknown_analysis_names_those_that_there_are():
    with pytest.raises(ValueError, match="no analysis 'lenses'; there are .*logit-lens"):
        analysis("lenses")


def test_an_option_out_of_bounds_is_refused_with_its_value():
    with pytest.raises(InputError, match="steps must be at least 1 and at most 8, not 9"):
        Option("steps", "of the path", int, 4, minimum=1, maximum=8).check(9)
    with pytest.raises(InputError, match="noise must be at least 0, not nan"):
        Option("noise", "of the samples", float, 0.0, minimum=0).check(float("nan"))


def test_a_call_prints_the_python_that_it_runs(tiny_bert):
    trace = tiny_bert.trace("the cat [MASK] on the mat")
    call = Call.of(logit_lens, positions=[3], top_k=2)
    assert call == Call.of(logit_lens, positions=(3,), top_k=2) and hash(call)
    text = call.python("bert", "trace")
    assert text == "logit_lens(bert, trace, positions=(3,), top_k=2)"
    again = eval(text, {"logit_lens": logit_lens, "bert": tiny_bert, "trace": trace})
    assert call.run(tiny_bert, trace).to_dict() == again.to_dict()
