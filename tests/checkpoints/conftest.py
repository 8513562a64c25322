"""What the tests of stored models share: one batch, a model's outputs on it, and a small copy of the hub."""

import contextlib
import hashlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="session")
def make_tiny(vocabulary):
    """make_tiny(heads, **settings) -> config, tokenizer and a model whose every weight is random."""
    from bert_tf.config import BertConfig
    from bert_tf.models import build_pretraining_model, named_variables
    from bert_tf.tokenizers import Tokenizer

    def make(heads=("pooler", "mlm", "nsp"), **settings):
        tokenizer = Tokenizer(vocabulary, lower_case=False)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=64,
            **settings,
        )
        model = build_pretraining_model(config, outputs=("sequence_output",), heads=heads)
        rng = np.random.default_rng(3)
        for name, variable in named_variables(model).items():
            centre = 1 if name.endswith("LayerNorm.weight") else 0
            variable.assign(rng.normal(centre, 0.15, variable.shape).astype(np.float32))
        return SimpleNamespace(config=config, tokenizer=tokenizer, model=model)

    return make


@pytest.fixture(scope="session")
def tiny(make_tiny):
    """A small BERT with all heads: `.config`, `.tokenizer`, `.model`."""
    return make_tiny()


@pytest.fixture(scope="session")
def headless(make_tiny):
    """A small BERT with a pooler and no other head."""
    return make_tiny(heads=("pooler",))


@pytest.fixture(scope="session")
def tiny_folder(tiny, tmp_path_factory):
    """The folder of `tiny` in this project's own format; not to be changed."""
    from bert_tf.checkpoints import save

    return save(tmp_path_factory.mktemp("models") / "tiny", tiny.config, tiny.tokenizer, tiny.model)


@pytest.fixture(scope="session")
def headless_folder(headless, tmp_path_factory):
    """The folder of `headless`; not to be changed."""
    from bert_tf.checkpoints import save

    folder = tmp_path_factory.mktemp("models") / "headless"
    return save(folder, headless.config, headless.tokenizer, headless.model)


@pytest.fixture(scope="session")
def batch():
    """int32 [2, 9] inputs, the second row padded, ids below 40."""
    rng = np.random.default_rng(7)
    padding = np.ones((2, 9), np.int32)
    padding[1, 6:] = 0
    segments = np.repeat([[0] * 4 + [1] * 5], 2, axis=0).astype(np.int32)
    return {"token_ids": rng.integers(5, 40, (2, 9)).astype(np.int32), "segment_ids": segments, "padding_mask": padding}


@pytest.fixture(scope="session")
def outputs_of(batch):
    """outputs_of(model, *names) -> float32 arrays on `batch`; without names all that its heads allow."""
    from bert_tf.models import view

    def outputs(model, *names):
        if not names:
            names = ("sequence_output",) + tuple(
                output
                for head, output in (("pooler", "pooled_output"), ("mlm", "mlm_logits_all"), ("nsp", "nsp_logits"))
                if head in model.bert_heads
            )
        return {name: np.asarray(value, np.float32) for name, value in view(model, names)(batch).items()}

    return outputs


@pytest.fixture(scope="session")
def transformers_outputs(batch):
    """transformers_outputs(model) -> the same outputs of a torch BertModel or BertFor..., on `batch`."""
    import torch

    def outputs(model):
        inputs = {
            "input_ids": batch["token_ids"],
            "token_type_ids": batch["segment_ids"],
            "attention_mask": batch["padding_mask"],
        }
        with torch.no_grad():
            actual = model(
                **{name: torch.tensor(value.astype(np.int64)) for name, value in inputs.items()},
                output_hidden_states=True,
            )
        names = {
            "sequence_output": actual.hidden_states[-1],
            "pooled_output": actual.get("pooler_output"),
            "mlm_logits_all": actual.get("prediction_logits", actual.get("logits")),
            "nsp_logits": actual.get("seq_relationship_logits"),
        }
        return {name: value.numpy() for name, value in names.items() if value is not None}

    return outputs


class Hub:
    """A model hub on 127.0.0.1: the paths, headers and range requests of the real one.

    It has the API of models (`/api/models/REPO`, with `blobs`) and of discussions. A repository's pull request N is
    stored as "REPO@refs/pr/N". Sources: the requests and answers of huggingface_hub 2.4, hf_api.py.

    Attributes:
        files: (repo, name) -> bytes. cut_after: bytes of a file's body after which the connection is cut,
            once for each entry of this list. hashes: name -> ETag to declare instead of the true one.
        redirect: whether the weights are sent from another address, as the real hub does with large files.
        requests: (method, name, Range header or None) as they came.
        drip: seconds between two pieces of 20 bytes of the second half of the weights; 0 for the half at once.
        cards: repo -> the metadata of its card. discussions: repo -> list of the hub's discussions.
        gated: repositories that are given only with the token "accepted". xet: whether large files have Xet headers.
        gate: the second half of the weights is sent when this event is set, as it is from the beginning.
    """

    def __init__(self):
        self.files, self.cut_after, self.hashes, self.requests, self.status = {}, [], {}, [], 200
        self.redirect, self.drip, self.gate = False, 0.0, threading.Event()
        self.cards, self.discussions, self.gated, self.xet = {}, {}, set(), False
        self.gate.set()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                hub.answer(self, body=False)

            def do_GET(self):
                hub.answer(self, body=True)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def etag(self, name, data):
        return self.hashes.get(name, hashlib.sha256(data).hexdigest())

    def answer(self, handler, body):
        if handler.path.startswith("/api/models/"):
            return self._answer_api(handler)
        repo, _, rest = handler.path.removeprefix("/store").strip("/").partition("/resolve/")
        revision, _, name = rest.partition("/")
        repo = self._stored(repo, urllib.parse.unquote(revision))
        if repo in self.gated and handler.headers.get("Authorization") != "Bearer accepted":
            return self._refuse_gated(handler)
        self.requests.append((handler.command, name, handler.headers.get("Range")))
        data = self.files.get((repo, name))
        if self.status != 200 or data is None:
            return self._refuse(handler, repo)
        if self.redirect and name == "model.safetensors" and not handler.path.startswith("/store/"):
            return self._send_on(handler, name, data)
        start = int((handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
        handler.send_response(206 if start else 200)
        for key, value in {
            "ETag": f'"{self.etag(name, data)}"',
            "X-Repo-Commit": self.commit(repo),
            "Accept-Ranges": "bytes",
            "Content-Length": len(data) - start,
        }.items():
            handler.send_header(key, str(value))
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        handler.end_headers()
        if body:
            self._send(handler, name, data[start:])

    def _send_on(self, handler, name, data):
        handler.send_response(302)
        for key, value in {
            "X-Linked-ETag": f'"{self.etag(name, data)}"',
            "X-Linked-Size": len(data),
            "X-Repo-Commit": COMMIT,
            "ETag": '"address-of-the-redirect"',
            "Content-Length": 0,
            "Location": f"{self.endpoint}/store{handler.path}",
            **({"X-Xet-Hash": "ab" * 32, "Link": '<https://127.0.0.1/x>; rel="xet-auth"'} if self.xet else {}),
        }.items():
            handler.send_header(key, str(value))
        handler.end_headers()

    def _send(self, handler, name, data):
        if self.cut_after and name == "model.safetensors":
            data = data[: self.cut_after.pop(0)]
            handler.close_connection = True
        half = len(data) // 2
        handler.wfile.write(data[:half])
        if name == "model.safetensors":
            self.gate.wait(600)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked may have gone
            step = 20 if self.drip and name == "model.safetensors" else max(1, len(data))
            for start in range(half, len(data), step):
                handler.wfile.write(data[start : start + step])
                threading.Event().wait(self.drip)

    def _refuse(self, handler, repo):
        known = any(key[0] == repo for key in self.files)
        handler.send_response(404 if self.status == 200 else self.status)
        if self.status == 200:
            handler.send_header("X-Error-Code", "EntryNotFound" if known else "RepoNotFound")
        handler.send_header("X-Repo-Commit", COMMIT)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def _stored(self, repo, revision):
        """The key of a repository at a revision: a pull request and its commit have a key of their own."""
        for key in {key for key, _ in self.files if key.startswith(f"{repo}@")}:
            if revision in (key.partition("@")[2], self.commit(key)):
                return key
        return repo

    def commit(self, key):
        """The commit of a repository, or of its pull request."""
        return hashlib.sha1(key.encode()).hexdigest() if "@" in key else COMMIT

    def _answer_api(self, handler):
        path, _, _ = handler.path.removeprefix("/api/models/").partition("?")
        repo, _, rest = (
            path.partition("/discussions") if path.endswith("/discussions") else path.partition("/revision/")
        )
        if path.endswith("/discussions"):
            actual = self.discussions.get(repo, [])
            return self._send_json(handler, {"discussions": actual, "count": len(actual), "start": 0})
        repo, revision = urllib.parse.unquote(repo), urllib.parse.unquote(rest)
        self.requests.append((handler.command, f"api:{revision}", None))
        key = self._stored(repo, revision)
        names = [name for stored, name in self.files if stored == key]
        if not names or self.status != 200:
            return self._refuse(handler, key)
        return self._send_json(
            handler,
            {
                "id": repo,
                "sha": self.commit(key),
                "private": False,
                "gated": "auto" if key in self.gated else False,
                "tags": [],
                "cardData": self.cards.get(repo),
                "siblings": [self._sibling(key, name) for name in names],
            },
        )

    def _sibling(self, key, name):
        data = self.files[key, name]
        sibling = {"rfilename": name, "size": len(data), "blobId": hashlib.sha1(data).hexdigest()}
        if name.endswith((".safetensors", ".bin", ".h5", ".model")):
            sibling["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
        return sibling

    def _send_json(self, handler, values):
        data = json.dumps(values).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _refuse_gated(self, handler):
        handler.send_response(401)
        handler.send_header("X-Error-Code", "GatedRepo")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def add_model(self, repo, folder):
        """Offers the files of a model folder under a repository's name."""
        for path in folder.iterdir():
            if path.is_file():
                self.files[repo, path.name] = path.read_bytes()


@pytest.fixture
def hub():
    """A running `Hub` with nothing on it."""
    hub = Hub()
    yield hub
    hub.close()


@pytest.fixture
def edit_json():
    """edit_json(path, **changes) -> changes keys of a JSON file."""

    def edit(path, **changes):
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return edit
