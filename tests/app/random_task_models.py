"""Random fine-tuned models for the Tasks pages."""

from tests.conftest import make_bert, randomise

LIMITS = """
[text]
max_characters = 5000
[models]
default = "plain"
offered = ["plain", "classes", "pairs", "score", "tags", "answers", "endings", "either", "words", "alike"]
warm = false
"""
TASKS = {
    "classes": {"task": "classify", "labels": ("bad", "good"), "pooling": "mean"},
    "pairs": {"task": "classify", "labels": ("other", "same"), "pair": True},
    "score": {"task": "classify", "regression": True, "pooling": "mean"},
    "tags": {"task": "tag", "labels": ("O", "B-place", "I-place")},
    "answers": {"task": "answer", "pair": True, "max_length": 64},
    "endings": {"task": "choose", "pair": True},
    # As Transformers' classifiers: nothing says whether they read pairs.
    "either": {"task": "classify", "labels": ("no", "yes"), "pair": None},
    "words": {"task": "tag", "labels": ("DET", "NOUN", "VERB")},  # every word has one, none begins or goes on
    "alike": {
        "task": "similarity",
        "pooling": "mean",
        "regression": True,
        "pair": True,
        "extra": {"normalize": True, "lower_case": False},
    },
}


def save_tasks(home):
    """A plain model and one of each task, in the folder ``home``; and the limits that offer them."""
    from bert_tf import checkpoints
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type

    plain = make_bert(seed=5, name="plain")
    checkpoints.save(home / "plain", plain.config, plain.tokenizer, plain.model)
    for seed, (name, values) in enumerate(TASKS.items()):
        settings = TaskSettings(**values)
        bert = make_bert(seed=seed)
        network = network_over(bert.model, task_type(settings.task), settings)
        randomise(network, seed)
        save_task(home / name, bert.config, bert.tokenizer, network, settings)
    (home / "explorer.toml").write_text(LIMITS)
