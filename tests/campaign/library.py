"""Attacks on the library and the command line."""

import contextlib
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def small_model(folder):
    from bert_tf import checkpoints
    from tests.conftest import make_bert

    bert = make_bert(seed=3, layers=1, name="start")
    return checkpoints.save(folder / "start", bert.config, bert.tokenizer, bert.model)


def _other_weights(name, straight, broken):
    files = [next(iter(sorted(folder.glob("**/model.safetensors"))), None) for folder in (straight, broken)]
    if None in files or len({hashlib.sha256(path.read_bytes()).hexdigest() for path in files}) > 1:
        return [f"{name}: the weights differ"]
    return []


def kills(rng, count, home, args):
    """`pretrain` and `finetune` are killed at random moments and resumed until they end."""
    start = small_model(home)
    words = "the a cat dog sat on mat ran in park river".split()
    (home / "text.txt").write_text(
        "\n\n".join("\n".join(" ".join(rng.choices(words, k=8)) + "." for _ in range(6)) for _ in range(60))
    )
    rows = [f"{' '.join(rng.choices(words, k=6))},{rng.choice(['large', 'little'])}" for _ in range(160)]
    (home / "train.csv").write_text("\n".join(["text,label", *rows]))
    common = ["--batch-size", "16", "--length", "16", "--strategy", "one", "--threads", "1", "--save-every", "5"]
    commands = {
        "pretrain": ["pretrain", "--init", start, "--text", home / "text.txt", "--steps", "60", *common],
        "classify": ["finetune", "classify", "--model", start, "--train", home / "train.csv", "--dev-share", "0.2"]
        + ["--epochs", "6", "--lengths", "1", *common],
    }
    tries, defects = 0, []
    for name, command in commands.items():
        command = [sys.executable, "-m", "bert_tf", *map(str, command), "--output"]
        straight, broken = home / f"{name}-straight", home / f"{name}-broken"
        since = time.monotonic()
        subprocess.run([*command, straight], cwd=ROOT, check=True, capture_output=True)
        whole = time.monotonic() - since
        killed, since = 0, time.monotonic()
        while killed < count // 2 and (not args.limit or time.monotonic() - since < args.limit / 2):
            process = subprocess.Popen(
                [*command, broken], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(rng.uniform(0.3, 1.0) * whole)
            process.send_signal(signal.SIGKILL)
            if process.wait() == -signal.SIGKILL:
                killed += 1
                continue
            defects += _other_weights(name, straight, broken)
            shutil.rmtree(broken)  # it came to its end, so the next kill is of a new run
        done = subprocess.run([*command, broken], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            defects.append(f"{name}: exit code {done.returncode}: {done.stderr[-300:]}")
        defects += _other_weights(name, straight, broken)
        tries += killed
    return tries, defects


def downloads(rng, count, home, args):
    """Downloads from a hub on this machine that cuts, lies and changes; what is accepted must be whole."""
    from huggingface_hub import file_download

    from bert_tf.checkpoints import DownloadError, download
    from bert_tf.checkpoints.registry import released
    from tests.checkpoints.conftest import Hub

    file_download.time.sleep = lambda seconds: None
    model, defects = released("bert-tiny"), []
    source = small_model(home)
    for number in range(count):
        hub, folder = Hub(), home / f"models-{number}"
        try:
            hub.add_model(model.repo, source)
            weights = hub.files[model.repo, "model.safetensors"]
            kind = rng.choice(["cut", "cuts", "hash", "flip", "missing", "status", "redirect", "change"])
            if kind in ("cut", "cuts", "change"):
                hub.cut_after = [rng.randrange(len(weights))] + [0] * (0 if kind == "cut" else 6)
            elif kind == "hash":
                hub.hashes["model.safetensors"] = "".join(rng.choices("0123456789abcdef", k=rng.choice([40, 64])))
            elif kind == "flip":
                hub.hashes["model.safetensors"] = hashlib.sha256(weights).hexdigest()
                place = rng.randrange(len(weights))
                hub.files[model.repo, "model.safetensors"] = (
                    weights[:place] + bytes([weights[place] ^ 1]) + weights[place + 1 :]
                )
            elif kind == "missing":
                del hub.files[model.repo, rng.choice(["config.json", "vocab.txt", "model.safetensors"])]
            elif kind == "status":
                hub.status = rng.choice([400, 401, 403, 404, 410, 500, 502, 503])
            elif kind == "redirect":
                hub.redirect = True
            for attempt in range(2):
                try:
                    downloaded = download(model.name, endpoint=hub.endpoint, folder=folder)
                    if (downloaded / "model.safetensors").read_bytes() != weights:
                        defects.append(f"try {number} ({kind}): wrong weights accepted")
                except DownloadError:
                    if (folder / model.name).exists():
                        defects.append(f"try {number} ({kind}): a folder after an error")
                if kind == "change" and not attempt:
                    weights = weights[::-1]
                    hub.files[model.repo, "model.safetensors"] = weights
        except Exception:
            defects.append(f"try {number} ({kind}): {traceback.format_exc()[-300:]}")
        finally:
            hub.close()
    return count, defects


def folders(rng, count, home, args):
    """Model folders with one file cut, flipped, exchanged, emptied or with other settings."""
    from bert_tf.user_errors import is_user_error

    source = small_model(home)
    expected = _numbers(source)
    defects = []
    for number in range(count):
        folder = home / "broken"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        path = folder / rng.choice(["model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"])
        data = bytearray(path.read_bytes())
        kind = rng.choice(["cut", "flip", "empty", "lines", "value", "remove"])
        if kind == "cut":
            data = data[: rng.randrange(len(data))]
        elif kind == "flip":
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == "empty":
            data = b""
        elif kind == "lines" and path.suffix == ".txt":
            lines = data.split(b"\n")
            one, other = rng.sample(range(len(lines) - 1), 2)
            lines[one], lines[other] = lines[other], lines[one]
            data = b"\n".join(lines)
        elif kind == "value" and path.suffix == ".json":
            values = json.loads(data)
            values[rng.choice(list(values))] = rng.choice([None, -1, 0, 1, 1e308, "x", [], {}, True])
            data = json.dumps(values).encode()
        path.write_bytes(data)
        if kind == "remove":
            path.unlink()
        try:
            if not np.allclose(_numbers(folder), expected, atol=1e-5):
                defects.append(f"try {number}: {path.name} {kind}: other numbers")
        except Exception as error:
            if not is_user_error(error):
                defects.append(f"try {number}: {path.name} {kind}: {type(error).__name__}: {error}"[:300])
    return count, defects


def _numbers(folder):
    import bert_tf

    answer = bert_tf.load(folder).predict("the cat [MASK] on the mat", top_k=5)
    return [prediction.probability for prediction in answer.masks[0].predictions]
