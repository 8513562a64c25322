"""From a cold process to the first prediction: wall time, processor time and memory, beside other libraries.

    python benchmarks/cold_start.py [--model bert-base-cased-embedded] [--rounds 5] [--cache FOLDER] [--json FILE]

Each program loads the same weights in a fresh Python process and prints the likeliest token for the [MASK] of one
sentence. The programs take turns; the medians of all rounds are printed. The others get what they read fastest: ONNX
Runtime a file exported beforehand (and its dynamic int8 copy), Transformers float32 safetensors. KerasHub's preset has
no MLM head, so its program ends with the last hidden state. Needs requirements-bench.txt.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = "Shanghai is a city in [MASK]."

OURS = """
import sys
sys.path.insert(0, {root!r})
import bert_tf
bert = bert_tf.load({model!r}, precision={precision!r})
print(bert.predict({text!r}).masks[0].predictions[0].token)
"""
ONNX = """
import numpy as np, onnxruntime
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file({folder!r} + "/tokenizer.json")
encoding = tokenizer.encode({text!r})
session = onnxruntime.InferenceSession({file!r}, providers=["CPUExecutionProvider"])
names = ("input_ids", "token_type_ids", "attention_mask")
values = (encoding.ids, encoding.type_ids, encoding.attention_mask)
logits = session.run(None, {{name: np.array([value], np.int64) for name, value in zip(names, values)}})[0]
print(tokenizer.id_to_token(int(logits[0, encoding.tokens.index("[MASK]")].argmax())))
"""
TRANSFORMERS = """
import torch
from transformers import AutoTokenizer, BertForMaskedLM
tokenizer, model = AutoTokenizer.from_pretrained({folder!r}), BertForMaskedLM.from_pretrained({folder!r}).eval()
inputs = tokenizer({text!r}, return_tensors="pt")
with torch.inference_mode():
    logits = model(**inputs).logits
place = inputs.input_ids[0].tolist().index(tokenizer.mask_token_id)
print(tokenizer.convert_ids_to_tokens(int(logits[0, place].argmax())))
"""
KERASHUB = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras_hub, numpy as np
backbone = keras_hub.models.BertBackbone.from_preset({preset!r})
ids = np.array([{ids}], "int32")
outputs = backbone({{"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}})
print(np.asarray(outputs["sequence_output"]).shape)
"""


def main(arguments=None):
    options = _options(arguments)
    cache = Path(options.cache or tempfile.mkdtemp())
    cache.mkdir(parents=True, exist_ok=True)
    # In a process of its own: the peak memory of a program begins with that of the process that starts it.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        programs = pool.submit(_programs, options.model, cache).result()
    runs = {name: [] for name in programs}
    for _ in range(options.rounds):
        for name, program in programs.items():
            runs[name].append(_run(program))
    results = {name: _summary(rows) for name, rows in runs.items()}
    print(f"{'':32} {'wall s':>7} {'cpu s':>7} {'peak MB':>8}  answer")
    for name, row in results.items():
        print(f"{name:32} {row['wall_s']:7.2f} {row['cpu_s']:7.2f} {row['peak_mb']:8.0f}  {row['answer']}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    return 0


def _programs(model, cache):
    folder, files, preset = _prepared(model, cache)
    values = {"root": str(ROOT), "model": model, "text": TEXT, "folder": str(folder), "preset": str(preset)}
    programs = {
        f"ours, {precision}": OURS.format(**values, precision=precision)
        for precision in ("float32", "bfloat16", "int8")
    }
    programs |= {f"ONNX Runtime, {name}": ONNX.format(**values, file=str(file)) for name, file in files.items()}
    programs["Transformers"] = TRANSFORMERS.format(**values)
    from bert_tf import load

    ids = load(model).trace(TEXT, attentions=False, hidden_states=False).token_ids.tolist()
    programs["KerasHub, no MLM head"] = KERASHUB.format(**values, ids=ids)
    return programs


def _prepared(model, cache):
    """(the folder for Transformers, ONNX files by name, KerasHub's preset); made once and kept in `cache`."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.inference_peers import quantized_file
    from bert_tf.checkpoints import convert, find

    folder, preset = cache / f"{model}-hf", cache / f"{model}-preset"
    if not preset.exists():
        convert(find(model), folder, to="hf")
        convert(find(model), preset, to="keras-nlp")
    plain = cache / f"{model}.onnx"
    if not plain.exists():
        _export(folder, plain)
    return folder, {"float32": plain, "int8": quantized_file(plain)}, preset


def _export(folder, path):
    import torch
    from transformers import AutoTokenizer, BertForMaskedLM

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = BertForMaskedLM.from_pretrained(folder)

        def forward(self, input_ids, token_type_ids, attention_mask):
            return self.model(input_ids=input_ids, token_type_ids=token_type_ids, attention_mask=attention_mask).logits

    names = ["input_ids", "token_type_ids", "attention_mask"]
    axes = {name: {0: "batch", 1: "tokens"} for name in names}
    example = tuple(torch.ones(2, 16, dtype=torch.int64) for _ in names)
    torch.onnx.export(Logits().eval(), example, str(path), input_names=names, dynamo=False, dynamic_axes=axes)


def _run(program):
    """Wall seconds, processor seconds, peak megabytes and the answer of one process."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"A program failed:\n{errors.decode()[-2000:]}")
    scale = 1e6 if sys.platform == "darwin" else 1e3
    seconds = usage.ru_utime + usage.ru_stime
    return wall, seconds, usage.ru_maxrss / scale, output.decode().split("\n")[-2].strip()


def _summary(rows):
    wall, cpu, peak = (statistics.median(row[index] for row in rows) for index in range(3))
    return {"wall_s": wall, "cpu_s": cpu, "peak_mb": peak, "answer": rows[-1][3]}


def _options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cache", help="folder for the exported files; a temporary one by default")
    parser.add_argument("--json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
