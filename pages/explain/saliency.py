"""Saliency: how each word of the visitor's texts changes one answer."""

import dataclasses

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import SALIENCY_METHODS
from bert_tf.explain.attribution.methods import ANALYSIS
from bert_tf.explain.attribution.saliency import COPIES, MOST_GAP, MOST_GRADIENTS
from bert_tf.explain.interventions.contributions import is_only_class
from bert_tf.plots.diverging import diverging_ramp
from pages.explain import hotflip_view, input_reduction_view, saliency_fidelity
from pages.explain.snippets.saliency import snippet
from ui.elements import tables
from ui.elements.cells import marks
from ui.samples import concepts
from ui.session import calls, jobs, state
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, highlights, inputs, targets
from ui.widgets.formatting import escape_markdown, number, signed

PAGE = Page(
    name="saliency",
    group="Explain",
    order=4,
    title="Saliency",
    question="Which words the answer depends on",
    terms=(
        "why explanation important words integrated gradients LIME SHAP DeepLift LRP occlusion SmoothGrad gradient "
        "x input feature attribution"
    ),
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
    in_float32=True,
)


#: What the progress bar says, where it is not the method's name.
_JOB_LABELS = {"input-reduction": "Removing words, one at a time", "hotflip": "Trying other words"}
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
_ENOUGH = 0  # the choice of as many steps as keep the gap within `MOST_GAP`
_SAMPLES = (64, 128, 256, 512)
_NOISE = (0.01, 0.02, 0.05, 0.1)
_LOW = 0.3  # weighted R² below which the scores of the linear model mean little
_HIDDEN_BY_NOISE = 2.3  # nats that the answer loses: a tenth of its probability is left
_BASELINES = ("[PAD]", "[MASK]")
_SENTENCES = "sentences"  # the project's sentences: each is a reference, and the scores are the mean over them
_REFERENCES = (4, 8, 16, 32)
_EXPLANATIONS = {
    "integrated-gradients": (
        "The gradient of the {score}, integrated along the path from a text of only {baseline} to this one (special"
        " tokens and masks stay). Another start gives other scores."
    ),
    "gradient-x-input": (
        "The gradient of the {score} at this text, times the embeddings of the words. It is the cheapest and roughest"
        " method: it uses the gradient at this one point only, and the scores need not add up to anything."
    ),
    "smoothgrad": (
        "The mean gradient over {copies} copies of this text with noise on the embeddings, times the embeddings"
        " without noise: peculiarities of this one point are averaged away. The scores need not add up to anything."
    ),
    "deeplift": (
        "The gain of the {score} from {start} to this one (special tokens and masks stay), passed back step by step in"
        " proportion to each step's part in it; two factors of a product get half each. DeepLift seldom shows what"
        " opposes an answer, and another start gives other scores."
    ),
    "lrp": (
        "The {odds} passed back layer by layer, with the attention weights, the standard deviations of the"
        " normalisations and the gates of the activations fixed at their values in this pass. How the attention weights"
        " come about is not in the scores."
    ),
    "occlusion": (
        "Each word in turn is replaced by {baseline}; its score is what the answer loses. Words that can replace each"
        " other all look unimportant."
    ),
    "lime": (
        "The weights of a linear model that is fitted to {samples} texts with random words replaced by {baseline};"
        " texts nearer to this one count more (Ribeiro et al. 2016). Effects that words only have together are not in"
        " it, and another random draw gives other scores."
    ),
}


def page():
    page_inputs = targets.page_inputs()
    if page_inputs is None:
        return
    shared, _, trace = page_inputs
    target = targets.target_picker("saliency", shared, trace)
    method, settings = _method()
    if target is None or (method == "input-reduction" and not input_reduction_view.can(trace, target)):
        return
    if method == "hotflip" and not hotflip_view.can(shared, trace, target):
        return
    if method == "lrp" and is_only_class(shared.bert, target):
        targets.say_only_class(target.label)
        return
    call = Call.of(SALIENCY_METHODS[method], target=target, **settings)
    snippets.give(shared, trace, call, method)
    # Each method has its own job: a slow result is kept while the visitor looks at another method.
    label = _JOB_LABELS.get(method, _METHODS[method])
    result = calls.job_result(shared, call, trace, label=label, name=f"saliency {method}", patience=jobs.SHORT)
    if result is None:
        return
    if method == "input-reduction":
        input_reduction_view.draw(trace, result)
    elif method == "hotflip":
        hotflip_view.draw(trace, result, settings)
    else:
        _draw(trace, result, method, settings)


def _method():
    """Draw the widgets of the method; returns (its name, keyword arguments of its function)."""
    # Of the methods without random samples the first one is the best by benchmarks/saliency_fidelity.py; LIME, which
    # samples, is 0.17 nats better.
    method = st.segmented_control(
        "Method",
        list(_METHODS),
        format_func=_METHODS.get,
        **state.bind_setting("saliency.method", "w_saliency_method", "integrated-gradients", _METHODS),
    )
    settings = {}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if method == "integrated-gradients":
            settings |= _steps()
        if method == "smoothgrad":
            copies = dataclasses.replace(ANALYSIS.option("steps"), default=COPIES)
            settings["copies"] = inputs.option_choice(copies, "Copies", _STEPS, "saliency.steps", "w_saliency_steps")
            settings["noise"] = inputs.option_choice(
                ANALYSIS.option("noise"),
                "Noise",
                _NOISE,
                "saliency.noise",
                "w_saliency_noise",
                help="The standard deviation of the noise, as a share of the range of the numbers in the embeddings.",
            )
        if method == "lime":
            settings["samples"] = inputs.option_choice(
                ANALYSIS.option("samples"), "Samples", _SAMPLES, "saliency.samples", "w_saliency_samples"
            )
        if method in ("integrated-gradients", "deeplift", "occlusion", "lime"):
            starts = method in ("integrated-gradients", "deeplift")
            name = f"saliency.{'from' if starts else 'instead'}"
            baselines = (*_BASELINES, _SENTENCES) if method == "deeplift" else _BASELINES
            settings["baseline"] = st.segmented_control(
                "Starting from" if starts else "In its place",
                baselines,
                format_func=lambda baseline: "Sentences" if baseline == _SENTENCES else baseline,
                required=True,
                **state.bind_setting(name, f"w_{name}", saliency_fidelity.best_baseline(method), baselines),
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


def _steps():
    """Draw the choice of the steps of integrated gradients; returns keyword arguments of the method."""
    steps = st.segmented_control(
        "Steps",
        (_ENOUGH, *_STEPS),
        format_func=lambda steps: "Enough" if steps == _ENOUGH else str(steps),
        required=True,
        help="Enough: the parts of the path where the scores miss most are halved until the scores add up to what they "
        f"explain, but for at most {MOST_GAP:.0%} of it. At most {MOST_GRADIENTS:,} gradients are taken, and then more "
        "may be missing.",
        **state.bind_setting("saliency.steps", "w_saliency_steps", _ENOUGH, (_ENOUGH, *_STEPS)),
    )
    return {"most_gap": MOST_GAP} if steps == _ENOUGH else {"steps": steps}


def _draw(trace, result, method, settings):
    words = result.words
    inputs.heading(f"What supports “{escape_markdown(result.target.label)}”")
    export.save(f"words-{method}", result, settings, trace=trace)
    marks(
        "c_saliency",
        highlights.word_highlights(trace, words, result.target, targets.score_unit(result.target)),
        diverging_ramp(state.is_dark()),
        ("opposes it", "supports it"),
        "Point at a word, or tap it, to see its score. The colours are scaled to the strongest word of this text.",
    )
    is_regression = result.target.is_regression
    score, odds = ("value", "value") if is_regression else ("answer's log-probability", "answer's log-odds")
    explanation = _EXPLANATIONS[method].format(**settings, start=_start(settings), score=score, odds=odds)
    st.caption(explanation)
    st.caption(_sums(result).strip())
    if tested := saliency_fidelity.sentence(method, settings.get("baseline"), _METHODS):
        st.caption(tested)
    left_column, right_column = st.columns([3, 2], gap="large")
    with left_column:
        figures.show(
            "The score of each word",
            result.figure(dark=state.is_dark()),
            key="w_saliency_bars",
            config=export.plot_config(f"words-{method}"),
        )
    with right_column:
        tables.show(
            {
                "text": [scored.word.source.upper() for scored in words],
                "word": [scored.word.text for scored in words],
                "score": [scored.score for scored in words],
            },
            hide_index=True,
            width="stretch",
            key="w_saliency_table",
            column_config={
                "text": st.column_config.TextColumn("Text", width="small"),
                "word": "Word",
                "score": st.column_config.NumberColumn(f"Score, {_unit(result)}", format="%+.3f"),
            },
        )


def _start(settings):
    """The baseline of DeepLift, in words."""
    baseline = settings.get("baseline")
    if isinstance(baseline, str) or baseline is None:
        return f"a text of only {baseline}"
    return (
        f"a text of another sentence's tokens, averaged over {len(baseline)} sentences of the project (DeepLiftShap),"
    )


def _sums(result):
    """The sentences behind a method's explanation: the answer's probability, and what the scores add up to."""
    score = targets.score_text(result.target, result.log_probability)
    text = f" “{escape_markdown(result.target.label)}” has {score} here."
    if result.noisy_log_probability is not None:
        return text + _with_noise(result)
    if result.weighted_r2 is not None:
        return text + _fitted(result.weighted_r2)
    if result.rest is not None:
        return text + _shared_out(result)
    if result.convergence_delta is None:
        return text
    gained = result.log_probability - result.baseline_log_probability
    unit = targets.score_unit(result.target)
    text = f"{text} From the start to here it gains {signed(gained, 3)} {unit}; the scores add up to"
    if result.method == "deeplift":
        return f"{text} the same" + (
            "."
            if abs(result.convergence_delta) < 0.001
            else f", except for {signed(result.convergence_delta, 3)} of rounding."
        )
    return (
        f"{text} {signed(gained + result.convergence_delta, 3)}:"
        f" convergence delta {signed(result.convergence_delta, 3)}"
        + (", which more steps make smaller." if abs(result.convergence_delta) > MOST_GAP * abs(gained) else ".")
    )


def _shared_out(result):
    """How the log-odds are shared out between the words and everything else."""
    words, rest = sum(scored.score for scored in result.words), result.rest
    name = "The value" if result.target.is_regression else "Its log-odds"
    text = (
        f" {name}, {signed(result.log_odds, 3)}, {'is' if result.target.is_regression else 'are'} the sum of"
        f" {signed(words, 3)} from the words here, {signed(result.scores.sum() - words, 3)} from special tokens,"
        f" {signed(rest['places'], 3)} from positions and segments and {signed(rest['biases'], 3)} from biases"
    )
    if not rest["spread"]:
        return text + "."
    return f"{text}; {signed(rest['spread'], 3)} comes from how the other answers share the remaining probability."


def _unit(result):
    """The unit of the scores."""
    return targets.score_unit(result.target) + (
        " of log-odds" if result.rest is not None and not result.target.is_regression else ""
    )


def _fitted(fit):
    """How well LIME's linear model predicts the answer on texts that it was not fitted to; a poor fit is flagged."""
    text = (
        f" Weighted R² {number(fit, 3)} on texts that it was not fitted to: 1 means a perfect prediction of the answer,"
        " 0 or less no better than the mean."
    )
    if fit >= _LOW:
        return text
    return (
        f"{text} That is low, so these scores mean little. Take more samples; or the words act more together than"
        " alone."
    )


def _with_noise(result):
    """The answer's probability in SmoothGrad's noisy copies; if the noise hides the answer, the scores mean little."""
    noisy = targets.score_text(result.target, result.noisy_log_probability)
    text = f" With the noise it has {noisy} (geometric mean of the copies)"
    if result.target.is_regression or result.log_probability - result.noisy_log_probability < _HIDDEN_BY_NOISE:
        return text + "."
    return text + ". So much noise hides the answer, and the scores mean little. Choose less noise."
