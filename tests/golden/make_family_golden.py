"""Makes `family/`: small random models of RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT, ALBERT, ELECTRA and DeBERTa-v3
with small tokenizers of their kinds, all saved by Transformers; `family/NAME.npz`: what they compute on a padded batch
of two; and `family/tokenizers.json`: what Transformers' tokenizers say about hard strings.

    python tests/golden/make_family_golden.py [NAME ...]

Names are the models to make anew; without one, all of them are.

Transformers, torch and sentencepiece are needed only to make the files, not to test with them. The tokenizers are
trained on this repository's LICENSE and on the hard strings themselves.
"""

import io
import json
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import transformers
from make_tokenizer_golden import TEXTS
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers.convert_slow_tokenizer import DebertaV2Converter

HERE = Path(__file__).parent / "family"
SHAPE = {"hidden_size": 24, "num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 32}
OWN_TEXTS = [
    "The <mask> sat on the mat.",
    "a<mask>b  <mask>",
    "one </s> two <s> three <pad> <unk>",
    "Ünïcödé 😀 ½ ﬁ",
    "Don't STOP, it's 3.14%!",
    "``quoted'' text",
    "  leading and trailing  ",
    "new\nline\ttab",
]
PAIRS = [
    ("The man went to the store.", "He bought a gallon of milk.", 512),
    ("The man went to the store.", "He bought a gallon of milk.", 12),
    ("one two three four five six seven eight", "nine ten", 9),
    ("a single text that is too long", None, 6),
]


def lines():
    text = (Path(__file__).parents[2] / "LICENSE").read_text().splitlines()
    return [line.strip() for line in text if line.strip()] + [text for text in TEXTS if text.strip()]


def byte_level(folder):
    """vocab.json and merges.txt of 400 tokens."""
    folder.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        lines(),
        trainers.BpeTrainer(
            vocab_size=399,
            special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    tokenizer.model.save(str(folder))
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    vocabulary["<mask>"] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")


def pieces(folder):
    """A spiece.model of 300 pieces."""
    folder.mkdir()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()),
        model_writer=model,
        vocab_size=300,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]"],
        user_defined_symbols=["[MASK]"],
        pad_piece="<pad>",
        unk_piece="<unk>",
        character_coverage=0.98,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    (folder / "spiece.model").write_bytes(model.getvalue())


def fairseq_pieces(folder):
    """A sentencepiece.bpe.model of 300 pieces, as fairseq trains them; fairseq adds the other tokens."""
    folder.mkdir()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()), model_writer=model, vocab_size=300, character_coverage=0.98, minloglevel=2
    )
    (folder / "sentencepiece.bpe.model").write_bytes(model.getvalue())


def deberta_pieces(folder):
    """A spm.model of 300 pieces, as released: the mask token is not among them."""
    folder.mkdir()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()),
        model_writer=model,
        vocab_size=300,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        pad_piece="[PAD]",
        bos_piece="[CLS]",
        eos_piece="[SEP]",
        unk_piece="[UNK]",
        character_coverage=0.98,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    (folder / "spm.model").write_bytes(model.getvalue())
    settings = {"do_lower_case": False, "vocab_type": "spm"}  # all that the released folders say
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def deberta_tokenizer(folder):
    """Transformers' tokenizer of a spm.model, made by the converter that Transformers 4 used."""
    path = str(folder / "spm.model")
    plain = types.SimpleNamespace(
        vocab_file=path,
        do_lower_case=False,
        split_by_punct=False,
        add_prefix_space=True,
        convert_tokens_to_ids=sentencepiece.SentencePieceProcessor(path).piece_to_id,
    )
    made = DebertaV2Converter(plain).converted()
    roles = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, **{f"{role}_token": token for role, token in roles.items()}
    )


class DetectsReplacedTokens(torch.nn.Module):
    """The head of microsoft/DeBERTa's `replaced_token_detection_model.py`, which Transformers has not."""

    def __init__(self, config):
        super().__init__()
        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)
        self.LayerNorm = torch.nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.classifier = torch.nn.Linear(config.hidden_size, 1)

    def forward(self, states):
        states = self.dense(self.LayerNorm(states[:, :1] + states))
        return self.classifier(torch.nn.functional.gelu(states))[..., 0]


class DebertaV2ForMaskedLM(transformers.DebertaV2ForMaskedLM):
    """Both heads of a released DeBERTa-v3: `lm_predictions` and `mask_predictions`."""

    def __init__(self, config):
        super().__init__(config)
        self.mask_predictions = DetectsReplacedTokens(config)

    def forward(self, *inputs, **options):
        actual = super().forward(*inputs, **options)
        actual["replaced_logits"] = self.mask_predictions(actual.hidden_states[-1])
        return actual


def deberta():
    return DebertaV2ForMaskedLM(
        transformers.DebertaV2Config(
            vocab_size=304,  # padded, as the released ones
            num_hidden_layers=2,
            relative_attention=True,
            position_buckets=8,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type="p2c|c2p",
            position_biased_input=False,
            legacy=False,
            **SHAPE,
        )
    )


def like_roberta(name, vocab_size):
    settings = {"vocab_size": vocab_size, "num_hidden_layers": 2, "type_vocab_size": 1, "layer_norm_eps": 1e-5, **SHAPE}
    # Published settings; the class of CamemBERT has other token ids.
    return getattr(transformers, f"{name}Config")(pad_token_id=1, bos_token_id=0, eos_token_id=2, **settings)


def word_pieces(folder):
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(56))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")


def family():
    """name -> (what makes the vocabulary, its size, a Transformers model)"""
    roberta = transformers.RobertaConfig(
        vocab_size=400, num_hidden_layers=2, type_vocab_size=1, layer_norm_eps=1e-5, **SHAPE
    )
    with_pooler = transformers.RobertaForMaskedLM(roberta)
    with_pooler.roberta = transformers.RobertaModel(roberta)
    with_pooler.tie_weights()
    distilbert = transformers.DistilBertConfig(
        vocab_size=61, dim=24, n_heads=4, n_layers=2, hidden_dim=40, max_position_embeddings=32
    )
    albert = transformers.AlbertConfig(
        vocab_size=300, embedding_size=8, num_hidden_layers=4, num_hidden_groups=2, **SHAPE
    )
    electra = {"vocab_size": 61, "num_hidden_layers": 2, **SHAPE}
    return {
        "roberta": (byte_level, with_pooler),
        "distilbert": (word_pieces, transformers.DistilBertForMaskedLM(distilbert)),
        "albert": (pieces, transformers.AlbertForPreTraining(albert)),
        "xlm-roberta": (fairseq_pieces, transformers.XLMRobertaForMaskedLM(like_roberta("XLMRoberta", 302))),
        "camembert": (fairseq_pieces, transformers.CamembertForMaskedLM(like_roberta("Camembert", 305))),
        "deberta": (deberta_pieces, deberta()),
        "electra-discriminator": (
            word_pieces,
            transformers.ElectraForPreTraining(transformers.ElectraConfig(embedding_size=8, **electra)),
        ),
        "electra-generator": (
            word_pieces,
            transformers.ElectraForMaskedLM(transformers.ElectraConfig(embedding_size=24, **electra)),
        ),
    }


def randomise(model):
    """Biases and norms random too, so that none can be lost unseen."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            else:
                parameter.mul_(3 if "embeddings" in name else 5)


def inputs_for(config):
    rng = np.random.default_rng(5)
    token_ids = rng.integers(5, config.vocab_size, (2, 13))
    padding_mask = np.ones_like(token_ids)
    padding_mask[1, 9:] = 0
    segment_ids = np.zeros_like(token_ids)
    if getattr(config, "type_vocab_size", 0) > 1:
        segment_ids[:, 6:] = 1
    return {
        "token_ids": np.where(padding_mask == 1, token_ids, config.pad_token_id),
        "segment_ids": segment_ids * padding_mask,
        "padding_mask": padding_mask,
    }


def outputs(model, inputs):
    """Everything Transformers gives, under this project's output names."""
    ids, segments, mask = (torch.tensor(inputs[name]) for name in ("token_ids", "segment_ids", "padding_mask"))
    model_inputs = {"input_ids": ids, "attention_mask": mask}
    if getattr(model.config, "type_vocab_size", 0):
        model_inputs["token_type_ids"] = segments
    with torch.no_grad():
        actual = model(**model_inputs, output_hidden_states=True, output_attentions=True)
        pooled = getattr(model.base_model(**model_inputs), "pooler_output", None)
    logits = actual.get("prediction_logits", actual.get("logits"))
    values = {
        "pooled_output": pooled,
        "sop_logits": actual.get("sop_logits"),
        **({"replaced_logits": actual["replaced_logits"]} if "replaced_logits" in actual else {}),
        "replaced_logits" if logits.ndim == 2 else "mlm_logits_all": logits,
        **{f"hidden_states.{i}": value for i, value in enumerate(actual.hidden_states)},
        **{f"attentions.{i}": value for i, value in enumerate(actual.attentions)},
    }
    return {name: value.numpy().astype(np.float32) for name, value in values.items() if value is not None}


def tokens(tokenizer):
    """Ids, offsets and words of each text alone, ids and segments of each pair."""
    texts = []
    for text in TEXTS + OWN_TEXTS:
        actual = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        texts.append({"ids": actual.input_ids, "offsets": actual.offset_mapping, "words": actual.word_ids()})
    pairs = [
        tokenizer(a, b, truncation="longest_first", max_length=most, return_token_type_ids=True) for a, b, most in PAIRS
    ]
    return {"texts": texts, "pairs": [{"ids": pair.input_ids, "segments": pair.token_type_ids} for pair in pairs]}


TOKENIZERS = {
    "roberta": "RobertaTokenizer",
    "albert": "AlbertTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
}


def main(names):
    torch.manual_seed(7)
    for name, (vocabulary, model) in family().items():
        if names and name not in names:
            continue
        shutil.rmtree(HERE / name, ignore_errors=True)
        vocabulary(HERE / name)
        model.set_attn_implementation("eager")
        model.eval()
        randomise(model)
        model.save_pretrained(HERE / name)
        (HERE / name / "generation_config.json").unlink(missing_ok=True)
        inputs = inputs_for(model.config)
        np.savez_compressed(HERE / f"{name}.npz", **inputs, **outputs(model, inputs))
    golden = {"transformers": transformers.__version__, "texts": TEXTS + OWN_TEXTS, "pairs": PAIRS}
    for name, kind in TOKENIZERS.items():
        golden[name] = tokens(getattr(transformers, kind).from_pretrained(HERE / name))
    golden["deberta"] = tokens(deberta_tokenizer(HERE / "deberta"))
    text = json.dumps(golden, separators=(",", ":")).replace('{"ids"', '\n{"ids"')
    (HERE / "tokenizers.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
