"""`bert-tf serve` beside a service of FastAPI and Transformers: requests a second for the same masked words.

    pip install fastapi uvicorn torch transformers
    python benchmarks/serve.py [--clients 16] [--seconds 15] [--rounds 3] [--model bert-base-cased-embedded]

The services run the same weights on the same cores, each with an endpoint that takes a text with [MASK] and gives
the five most probable words. Ours runs in float32 and in int8. The peer answers each request by one forward pass, as a
FastAPI tutorial has it: in float32, and in bfloat16, the quickest that Transformers has for a CPU without another
library. The services take turns; while one is asked, the others wait. Prints requests a second, the median and the
95th percentile of the seconds of a request, and what it is times the peer in float32.
"""

import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TEXTS = [
    "The capital of France is [MASK].",
    "She went to the [MASK] to buy some bread and a bottle of milk for the morning.",
    "The weather was [MASK] when we left the house, so nobody took an umbrella.",
    "He is a famous [MASK] who has written more than forty books about the history of the city and of its people.",
]


def peer(folder, precision):
    """The application of FastAPI and Transformers in a precision, "float32" or "bfloat16"."""
    import torch
    from fastapi import FastAPI
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder)
    model = model.to(getattr(torch, precision)).eval()
    app = FastAPI()

    @app.post("/predict")
    def predict(body: dict) -> dict:
        inputs = tokenizer(body["text_a"], return_tensors="pt")
        with torch.inference_mode():
            logits = model(**inputs).logits[0].float()
        masks = []
        for position in (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero().flatten().tolist():
            best = logits[position].softmax(-1).topk(5)
            tokens = tokenizer.convert_ids_to_tokens(best.indices.tolist())
            predictions = [{"token": t, "probability": p} for t, p in zip(tokens, best.values.tolist())]
            masks.append({"position": position, "predictions": predictions})
        return {"masks": masks}

    return app


def main():
    """Start both services, ask them in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--peer", nargs=3, metavar=("FOLDER", "PRECISION", "PORT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        import uvicorn

        uvicorn.run(peer(*args.peer[:2]), port=int(args.peer[2]), log_level="error")
        return
    with tempfile.TemporaryDirectory() as folder:
        _compare(args, Path(folder) / "model")


def _compare(args, folder):
    own = [sys.executable, "-m", "bert_tf"]
    subprocess.run([*own, "convert", args.model, str(folder), "--to", "hf"], check=True)
    ours = [*own, "serve", "--model", args.model, "--precision"]
    commands = {f"bert-tf {precision}": [*ours, precision, "--port"] for precision in ("float32", "int8")}
    for precision in ("bfloat16", "float32"):
        commands[f"FastAPI {precision}"] = [sys.executable, __file__, "--peer", str(folder), precision]
    ports = {name: _free_port() for name in commands}
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))}
    services = [subprocess.Popen([*command, str(ports[name])], env=environment) for name, command in commands.items()]
    try:
        words = {name: [_wait(port, text) for text in TEXTS] for name, port in ports.items()}
        print("the most probable words:", words)
        for _ in range(args.rounds):
            rates = {}
            for name, port in ports.items():
                _load(port, args.clients, min(3.0, args.seconds))  # compiled and warm
                began = time.monotonic()
                times = _load(port, args.clients, args.seconds)
                # Until the last answer: what is under way at the end counts, and more so at a slow service.
                rates[name] = len(times) / (time.monotonic() - began)
                late = sorted(times)[int(0.95 * len(times))]
                middle = statistics.median(times)
                print(f"{name}: {rates[name]:.1f} requests/s, median {middle:.3f} s, 95th percentile {late:.3f} s")
            print({name: f"{rate / rates['FastAPI float32']:.2f} times" for name, rate in rates.items()}, flush=True)
    finally:
        for service in services:
            service.terminate()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _ask(connection, text):
    connection.request("POST", "/predict", json.dumps({"text_a": text}), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    assert response.status == 200, answer
    return answer


def _wait(port, text):
    """The most probable word of a service, once it answers."""
    end = time.monotonic() + 240
    while True:
        try:
            answer = _ask(http.client.HTTPConnection("127.0.0.1", port, timeout=60), text)
            return answer["masks"][0]["predictions"][0]["token"]
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def _load(port, clients, seconds):
    """The seconds of each request that so many clients make, each with the next one when it has its answer.

    Raises: the error of a client that failed.
    """
    times, errors, end = [], [], time.monotonic() + seconds

    def client(number):
        connection, rng = http.client.HTTPConnection("127.0.0.1", port, timeout=120), random.Random(number)
        try:
            while time.monotonic() < end:
                start = time.monotonic()
                _ask(connection, rng.choice(TEXTS))
                times.append(time.monotonic() - start)
        except Exception as error:  # raised at the end: with a client less, the others wait less
            errors.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return times


if __name__ == "__main__":
    main()
