"""Saliency: what each word of the visitor's texts does to one answer."""

import streamlit as st

from bert_tf.explain import SALIENCY_METHODS
from bert_tf.explain.interventions.contributions import is_only_class
from bert_tf.plots.diverging import diverging_ramp
from pages.explain import hotflip_view, input_reduction_view
from pages.explain.snippets.saliency import snippet
from ui.elements.cells import marks
from ui.samples import concepts
from ui.session import jobs, state
from ui.shell import frame, snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, highlights, inputs, targets
from ui.widgets.formatting import escape_markdown

PAGE = Page(
    name="saliency",
    group="Explain",
    order=4,
    title="Saliency",
    question="Which words the answer hangs on",
    summary=(
        "integrated gradients (with the convergence delta), gradient × input, SmoothGrad, DeepLift, layer-wise "
        "relevance (with what biases have) and occlusion for a masked word, the next sentence (ALBERT: the "
        "order of sentences), a token's being replaced (ELECTRA) or a fine-tuned class, on the colours of the "
        "visitor's own words; LIME: a linear model of the answer with random words covered, and its fit; "
        "input reduction: which words are enough for the answer, and in which order the others can go; "
        "HotFlip: which other words change the answer"
    ),
    presses={"": Press("chip", MASKED, long=True)},
    analyses=("saliency",),
    settings=(
        "of",
        "token",
        "at",
        "follows",
        "label",
        "method",
        "steps",
        "noise",
        "from",
        "references",
        "instead",
        "samples",
        "flips",
        "tried",
    ),
    settings_help=(
        "position of a mask, `next`, `replaced` or `class`; the word, the scored token's position, `NotNext` "
        "(`Swapped`, `Original`) or class explained; `gradient-x-input`, `smoothgrad`, `deeplift`, `lrp`, "
        "`occlusion`, `lime`, `input-reduction` or `hotflip`; steps of the integral or noisy copies, the noise, "
        "start of the integral or DeepLift's reference (`sentences` for several, and how many), what stands "
        "in a word's place; LIME's samples; words that HotFlip changes at most, and tries for each word"
    ),
    opens_rows=True,
    snippet=snippet,
)


_METHODS = {
    "integrated-gradients": "Integrated gradients",
    "gradient-x-input": "Gradient × input",
    "smoothgrad": "SmoothGrad",
    "deeplift": "DeepLift",
    "lrp": "Layer-wise relevance",
    "occlusion": "Occlusion",
    "lime": "LIME",
    "input-reduction": "Input reduction",
    "hotflip": "HotFlip",
}
_STEPS = (8, 16, 32, 64, 128)
_SAMPLES = (64, 128, 256, 512)
_NOISE = (0.01, 0.02, 0.05, 0.1)
_LOW = 0.3  # R² below which a linear model says little
_GONE = 2.3  # nats that the answer loses: a tenth of its probability is left
_BASELINES = ("[PAD]", "[MASK]")
_SENTENCES = "sentences"  # the project's: each a reference, and the mean of them
_REFERENCES = (4, 8, 16, 32)
_SAYS = {
    "integrated-gradients": (
        "The slope of the {score}, gathered on the way from a text of nothing but {baseline}"
        " to this one (special tokens and masks stay). Another start gives other scores."
    ),
    "gradient-x-input": (
        "The slope of the {score} at this text, times the words' own vectors. It is the"
        " cheapest and the roughest: it knows this one point only, and the scores need not add up to"
        " anything."
    ),
    "smoothgrad": (
        "The mean slope over {copies} copies of this text with noise on its words' vectors, times the vectors"
        " without noise: what only this one point shows is smoothed away. The scores need not add up to anything."
    ),
    "deeplift": (
        "What the {score} gains from {start} to this one (special tokens and"
        " masks stay), passed back step by step in proportion to what each step gains itself; two that are multiplied"
        " share it by halves. It seldom shows what speaks against an answer, and another start gives other scores."
    ),
    "lrp": (
        "The {odds} passed back layer by layer, with attention weights, the spread that normalisations divide"
        " by and the gates of the activations held as they are in this pass. What makes the model look where it looks"
        " is not in the scores."
    ),
    "occlusion": (
        "Each word in turn replaced by {baseline}: what the answer then loses. Words that can stand in for"
        " each other all look unimportant."
    ),
    "lime": (
        "The weights of a linear model of {samples} texts in which random words are covered by {baseline}, those nearer"
        " to this text counting more (Ribeiro et al. 2016). What words do only together is not in it, and another draw"
        " gives other scores."
    ),
}


def page():
    opened = targets.page_inputs()
    if opened is None:
        return
    shared, _, trace = opened
    target = targets.target_picker("saliency", shared, trace)
    method, settings = _method()
    if target is None or (method == "input-reduction" and not input_reduction_view.can(trace, target)):
        return
    if method == "hotflip" and not hotflip_view.can(shared, trace, target):
        return
    if method == "lrp" and is_only_class(shared.bert, target):
        st.info(
            f"“{escape_markdown(target.label)}” is the only class, and always certain:"
            " nothing speaks for or against it.",
            icon=":material/block:",
        )
        return
    snippets.give(shared, trace, target, method, settings)
    if method == "input-reduction":
        input_reduction_view.draw(shared, trace, target)
        return
    if method == "hotflip":
        hotflip_view.draw(shared, trace, target, settings)
        return
    found = _scores(shared, trace, target, method, settings)
    if found is not None:
        _draw(trace, found, method, settings)


def _method():
    """(name of the method, keyword arguments of its function)."""
    method = st.segmented_control(
        "Method",
        list(_METHODS),
        format_func=_METHODS.get,
        **state.bind_setting("saliency.method", "w_saliency_method", "integrated-gradients", _METHODS),
    )
    settings = {}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if method in ("integrated-gradients", "smoothgrad"):
            settings["steps" if method == "integrated-gradients" else "copies"] = st.segmented_control(
                "Steps" if method == "integrated-gradients" else "Copies",
                _STEPS,
                **state.bind_setting("saliency.steps", "w_saliency_steps", 32, _STEPS),
            )
        if method == "smoothgrad":
            settings["noise"] = st.segmented_control(
                "Noise",
                _NOISE,
                help="Its standard deviation, as a share of the range of the numbers in the words' vectors.",
                **state.bind_setting("saliency.noise", "w_saliency_noise", 0.01, _NOISE),
            )
        if method == "lime":
            settings["samples"] = st.segmented_control(
                "Samples",
                _SAMPLES,
                **state.bind_setting("saliency.samples", "w_saliency_samples", 128, _SAMPLES),
            )
        if method in ("integrated-gradients", "deeplift", "occlusion", "lime"):
            # What each method's paper starts from is its default.
            starts = method in ("integrated-gradients", "deeplift")
            name = f"saliency.{'from' if starts else 'instead'}"
            offered = (*_BASELINES, _SENTENCES) if method == "deeplift" else _BASELINES
            settings["baseline"] = st.segmented_control(
                "Starting from" if starts else "In its place",
                offered,
                format_func=lambda one: "Sentences" if one == _SENTENCES else one,
                required=True,
                **state.bind_setting(name, f"w_{name}", "[PAD]" if starts else "[MASK]", offered),
            )
        if settings.get("baseline") == _SENTENCES:
            number = st.segmented_control(
                "How many",
                _REFERENCES,
                required=True,
                **state.bind_setting("saliency.references", "w_saliency_references", 8, _REFERENCES),
            )
            settings["baseline"] = concepts.sentences(concepts.OTHERS)[:number]
        if method == "occlusion":
            settings["unit"] = "word"
        if method == "hotflip":
            settings |= hotflip_view.settings()
    return method, settings


def _scores(shared, trace, target, method, settings):
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks, target, settings)

    def work(progress):
        # The gradient at one point is a single step, without a progress to report.
        reported = {} if method == "gradient-x-input" else {"progress": progress}
        return shared.run(SALIENCY_METHODS[method], trace, target, **settings, **reported)

    # Each has a place of its own: a long one is still there after a look at another.
    return jobs.result(f"saliency {method}", key, _METHODS[method], work, patience=jobs.SHORT)


def _draw(trace, found, method, settings):
    words = found.words
    with inputs.heading(f"What speaks for “{escape_markdown(found.target.label)}”"):
        export.save(f"words-{method}", found, {"model": trace.model, **settings})
    marks(
        "c_saliency",
        highlights.word_highlights(trace, words, found.target, targets.score_unit(found.target)),
        diverging_ramp(frame.is_dark()),
        ("speaks against it", "speaks for it"),
        "Point at a word, or tap it, for its score. Coloured by the strongest of this text.",
    )
    is_regression = found.target.is_regression
    score, odds = ("value", "value") if is_regression else ("answer's log-probability", "answer's log-odds")
    st.caption(_SAYS[method].format(**settings, start=_start(settings), score=score, odds=odds) + _sums(found))
    left, right = st.columns([3, 2], gap="large")
    with left:
        figures.show(
            "What each word counts for",
            found.figure(dark=frame.is_dark()),
            key="w_saliency_bars",
            config=export.plot_config(f"words-{method}"),
        )
    with right:
        st.dataframe(
            {
                "text": [one.word.source.upper() for one in words],
                "word": [one.word.text for one in words],
                "score": [one.score for one in words],
            },
            hide_index=True,
            width="stretch",
            key="w_saliency_table",
            column_config={
                "text": st.column_config.TextColumn("Text", width="small"),
                "word": "Word",
                "score": st.column_config.NumberColumn(f"Score, {_unit(found)}", format="%+.3f"),
            },
        )


def _start(settings):
    """What DeepLift starts from, in words."""
    baseline = settings.get("baseline")
    if isinstance(baseline, str) or baseline is None:
        return f"a text of nothing but {baseline}"
    return f"a text of another sentence's tokens, in the mean over {len(baseline)} of the project's (DeepLiftShap),"


def _sums(found):
    said = (
        f" “{escape_markdown(found.target.label)}” has {targets.score_text(found.target, found.log_probability)} here."
    )
    if found.noisy_log_probability is not None:
        return said + _with_noise(found)
    if found.weighted_r2 is not None:
        return said + _fitted(found.weighted_r2)
    if found.rest is not None:
        return said + _shared_out(found)
    if found.convergence_delta is None:
        return said
    gained = found.log_probability - found.baseline_log_probability
    unit = targets.score_unit(found.target)
    said = f"{said} From the start to here it gains {_signed(gained)} {unit}; the scores add up to"
    if found.method == "deeplift":
        return f"{said} just that" + (
            "."
            if abs(found.convergence_delta) < 0.001
            else f", but for {_signed(found.convergence_delta)} of rounding."
        )
    return (
        f"{said} {_signed(gained + found.convergence_delta)}: convergence delta {_signed(found.convergence_delta)}"
        + (", more steps make it smaller." if abs(found.convergence_delta) > 0.05 else ".")
    )


def _shared_out(found):
    """What the words and all else have of the log-odds."""
    words, rest = sum(one.score for one in found.words), found.rest
    whole = "The value" if found.target.is_regression else "Its log-odds"
    said = (
        f" {whole}, {_signed(found.log_odds)}, {'is' if found.target.is_regression else 'are'} {_signed(words)} of the"
        f" words here, {_signed(found.scores.sum() - words)} of special tokens, {_signed(rest['places'])} of positions"
        f" and segments and {_signed(rest['biases'])} of biases"
    )
    if not rest["spread"]:
        return said + "."
    return f"{said}; {_signed(rest['spread'])} comes from how the other answers share what is left to them."


def _signed(number):
    return f"{round(float(number), 3) + 0.0:+.3f}"


def _unit(found):
    """What the scores are counted in."""
    return targets.score_unit(found.target) + (
        " of log-odds" if found.rest is not None and not found.target.is_regression else ""
    )


def _fitted(fit):
    """How well the linear model foretells other texts; where it does not, its weights are chance."""
    said = (
        f" Weighted R² {fit:.3f} on draws it was not fitted to: 1 where it foretells the answer, 0 or less where it"
        " knows no more than the mean."
    )
    if fit >= _LOW:
        return said
    return (
        f"{said} That is low: these scores are worth little. More samples are needed, or words count together more"
        " than each alone."
    )


def _with_noise(found):
    """How much of the answer the noisy copies have; the scores are of the noise where it is gone."""
    noisy = targets.score_text(found.target, found.noisy_log_probability)
    said = f" With the noise it has {noisy} (geometric mean of the copies)"
    if found.target.is_regression or found.log_probability - found.noisy_log_probability < _GONE:
        return said + "."
    return said + ": so much noise hides the answer, and the scores say little. Choose less."
