"""Old names of pages and old values of settings, so that old links still open the same pages."""

from bert_tf.explain.attribution.methods import METHOD_ALIASES
from bert_tf.explain.datasets.row_map import ATTRIBUTE_ALIASES

#: Old name of a page -> its current name. The names of a page's settings begin with its name, so they changed too.
PAGES = {
    "attention": "all_heads",
    "modelview": "model_view",
    "methods": "attention_methods",
    "heads": "head_profiles",
    "lens": "logit_lens",
    "concepts": "tcav",
    "whatif": "counterfactuals",
    "inputsum": "input_embeddings",
    "meaning": "word_senses",
    "neighbours": "nearest_words",
    "compare": "side_by_side",
    "cka": "layer_similarity",
    "tasks": "task_predictions",
    "finetuned": "fine_tuning_changes",
    "newtask": "fine_tune",
    "training": "training_curves",
    "timelapse": "time_lapse",
    "oneway": "directionality",
    "electra": "replaced_token_detection",
    "family": "architectures",
}
#: Name of a setting -> dict from its old values to the current ones.
VALUES = {"saliency.method": METHOD_ALIASES, "dataset.colour": ATTRIBUTE_ALIASES}


def current(params: dict[str, str]) -> dict[str, str]:
    """The parameters of a link under their current names; if a link has both names of one, the current counts."""
    renamed = {}
    for key, value in params.items():
        page, dot, setting = key.partition(".")
        renamed[f"{PAGES.get(page, page)}.{setting}" if dot else key] = value
    renamed |= {key: value for key, value in params.items() if key in renamed}
    renamed = {key: VALUES.get(key, {}).get(value, value) for key, value in renamed.items()}
    if "page" in renamed:
        renamed["page"] = PAGES.get(renamed["page"], renamed["page"])
    return renamed
