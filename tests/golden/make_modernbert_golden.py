"""Makes `modernbert/`: a small random ModernBERT with a tokenizer of its kind, saved by Transformers; `modernbert.npz`:
what it computes on a padded batch of two; and `modernbert_tokens.json`: what Transformers' tokenizer says about hard
strings.

    python tests/golden/make_modernbert_golden.py

Transformers and torch are needed only to make the files, not to test with them.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import torch
import transformers
from make_family_golden import OWN_TEXTS, PAIRS, inputs_for, lines, outputs, randomise
from make_tokenizer_golden import TEXTS
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = Path(__file__).parent / "modernbert"
SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
MODERN_TEXTS = [
    "a    b\t\tc  [MASK] d [SEP] [unused1] |||IP_ADDRESS||| e\u0301 \u00e9",
    "def f(x):\n        return x  # eight spaces",
    "x[MASK]y [MASK]",
]


def tokenizer():
    """A byte-level BPE with the parts of ModernBERT's: NFC, tokens for runs of spaces, [CLS] A [SEP] B [SEP]."""
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        lines(),
        trainers.BpeTrainer(
            vocab_size=380,
            special_tokens=["|||IP_ADDRESS|||", "<|padding|>"],
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    made.add_tokens([AddedToken(" " * count, normalized=True) for count in range(8, 1, -1)])
    made.add_special_tokens(
        [AddedToken(token, special=True, normalized=False, lstrip=token == "[MASK]") for token in SPECIAL]
    )
    made.add_tokens([AddedToken(f"[unused{index}]", normalized=True) for index in range(8)])
    made.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0",
        special_tokens=[(token, made.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token=AddedToken("[MASK]", special=True, normalized=False, lstrip=True),
        model_max_length=2304,
        model_input_names=["input_ids", "attention_mask"],
    )


def long_text(model):
    """2,048 tokens, and the last hidden states at some of them."""
    ids = np.random.default_rng(6).integers(5, model.config.vocab_size, (1, 2048)).astype(np.int16)
    positions = np.arange(0, 2048, 89)
    with torch.no_grad():
        states = model.model(torch.tensor(ids.astype(np.int64))).last_hidden_state[0].numpy()
    return {"long_ids": ids, "long_positions": positions, "long_states": states[positions]}


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    torch.manual_seed(7)
    spelling = tokenizer()
    config = transformers.ModernBertConfig(
        vocab_size=len(spelling),
        hidden_size=24,
        num_attention_heads=4,
        intermediate_size=40,
        num_hidden_layers=5,
        max_position_embeddings=2304,
        local_attention=8,
        pad_token_id=spelling.pad_token_id,
        bos_token_id=spelling.cls_token_id,
        cls_token_id=spelling.cls_token_id,
        eos_token_id=spelling.sep_token_id,
        sep_token_id=spelling.sep_token_id,
    )
    model = transformers.ModernBertForMaskedLM(config)
    model.set_attn_implementation("eager")
    model.eval()
    randomise(model)
    model.save_pretrained(HERE)
    spelling.save_pretrained(HERE)
    (HERE / "generation_config.json").unlink(missing_ok=True)
    inputs = inputs_for(config)
    np.savez_compressed(HERE.with_suffix(".npz"), **inputs, **outputs(model, inputs), **long_text(model))
    texts = []
    for text in TEXTS + OWN_TEXTS + MODERN_TEXTS:
        actual = spelling(text, add_special_tokens=False, return_offsets_mapping=True)
        texts.append(
            {"text": text, "ids": actual.input_ids, "offsets": actual.offset_mapping, "words": actual.word_ids()}
        )
    pairs = [
        {"pair": [a, b, most], "ids": spelling(a, b, truncation="longest_first", max_length=most).input_ids}
        for a, b, most in PAIRS
    ]
    golden = {"transformers": transformers.__version__, "texts": texts, "pairs": pairs}
    text = json.dumps(golden, separators=(",", ":")).replace('{"text"', '\n{"text"')
    HERE.with_name("modernbert_tokens.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
