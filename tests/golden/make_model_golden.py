"""Makes `bert_tiny_random/` and `bert_tiny_random.npz`: a small random BertForPreTraining of Transformers and
everything it computes on a padded batch of two.

    python tests/golden/make_model_golden.py

Transformers and torch are needed only to make the file, not to test with it.
"""

from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForPreTraining

HERE = Path(__file__).parent
SETTINGS = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}


def random_model(**settings):
    """A BertForPreTraining whose biases and norms are random too, so that none can be lost unseen."""
    model = BertForPreTraining(BertConfig(**settings, attn_implementation="eager")).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            elif "embeddings" not in name:
                parameter.mul_(5)
    return model


def random_inputs(vocab_size):
    rng = np.random.default_rng(5)
    token_ids = rng.integers(5, vocab_size, (2, 13))
    padding_mask = np.ones_like(token_ids)
    padding_mask[1, 9:] = 0
    segment_ids = np.zeros_like(token_ids)
    segment_ids[:, 6:] = 1
    return {
        "token_ids": token_ids * padding_mask,
        "segment_ids": segment_ids * padding_mask,
        "padding_mask": padding_mask,
    }


def outputs(model, inputs):
    """Everything Transformers gives, under this project's output names."""
    ids, segments, mask = (torch.tensor(inputs[name]) for name in ("token_ids", "segment_ids", "padding_mask"))
    embeddings = model.bert.embeddings
    with torch.no_grad():
        actual = model(
            input_ids=ids,
            token_type_ids=segments,
            attention_mask=mask,
            output_hidden_states=True,
            output_attentions=True,
        )
        pooled = model.bert(input_ids=ids, token_type_ids=segments, attention_mask=mask).pooler_output
        total = (
            embeddings.word_embeddings(ids)
            + embeddings.token_type_embeddings(segments)
            + embeddings.position_embeddings(torch.arange(ids.shape[1]))
        )
    return {
        "embeddings_sum": total,
        "pooled_output": pooled,
        "mlm_logits_all": actual.prediction_logits,
        "nsp_logits": actual.seq_relationship_logits,
        **{f"hidden_states.{i}": value for i, value in enumerate(actual.hidden_states)},
        **{f"attentions.{i}": value for i, value in enumerate(actual.attentions)},
    }


def main():
    torch.manual_seed(7)
    model = random_model(**SETTINGS)
    model.save_pretrained(HERE / "bert_tiny_random", safe_serialization=True)
    (HERE / "bert_tiny_random" / "generation_config.json").unlink(missing_ok=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(SETTINGS["vocab_size"] - 5))]
    (HERE / "bert_tiny_random" / "vocab.txt").write_text("\n".join(words) + "\n")
    inputs = random_inputs(SETTINGS["vocab_size"])
    results = {name: value.numpy().astype(np.float32) for name, value in outputs(model, inputs).items()}
    np.savez_compressed(HERE / "bert_tiny_random.npz", **inputs, **results)


if __name__ == "__main__":
    main()
