"""A BERT encoder in ONNX against numpy, at a width of eight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, softmax

from harness.models.minilm import write_sentence_encoder
from harness.models.model import Input
from tests.models.onnx_runs import run_onnx_bytes

Array = NDArray[Any]

WIDTH, INNER, WORDS, HEADS, LAYERS = 8, 12, 20, 2, 2
SHAPE = (2, 5)
IDS = Input(shape=SHAPE, dtype="i64")
MASK = replace(IDS, fill="constant", value=1.0)


def random_weights() -> dict[str, Array]:
    """All weights by their names."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, WIDTH),
        "embeddings.position_embeddings.weight": (9, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        linear = {f"{name}.attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        linear[f"{name}.attention.output.dense"] = (WIDTH, WIDTH)
        linear[f"{name}.intermediate.dense"] = (INNER, WIDTH)
        linear[f"{name}.output.dense"] = (WIDTH, INNER)
        for part, shape in linear.items():
            shapes |= {f"{part}.weight": shape, f"{part}.bias": shape[:1]}
        for part in ("attention.output", "output"):
            shapes |= {f"{name}.{part}.LayerNorm.{kind}": (WIDTH,) for kind in ("weight", "bias")}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def expected_of(weights: Mapping[str, Array], ids: Array, mask: Array) -> tuple[Array, Array]:
    """Hidden states and the sentences' vectors."""

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def linear(x: Array, name: str) -> Array:
        return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])

    def by_head(x: Array) -> Array:
        return np.asarray(x.reshape(*SHAPE, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3))

    places = weights["embeddings.position_embeddings.weight"][: SHAPE[1]]
    x = (
        weights["embeddings.word_embeddings.weight"][ids]
        + places
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    x = norm(x, "embeddings.LayerNorm")
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        query, key, value = (by_head(linear(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value"))
        scores = query @ key.swapaxes(2, 3) / np.sqrt(WIDTH / HEADS)
        scores = np.where(mask[:, None, None, :] == 1, scores, -np.inf)
        context = (softmax(scores, axis=-1) @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(linear(context, f"{name}.attention.output.dense") + x, f"{name}.attention.output.LayerNorm")
        inner = linear(x, f"{name}.intermediate.dense")
        inner = inner * (erf(inner / np.sqrt(2)) + 1) / 2
        x = norm(linear(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
    means = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
    return x, means / np.linalg.norm(means, axis=1, keepdims=True)


def run(ids: Array, mask: Array) -> list[Array]:
    built = write_sentence_encoder(random_weights(), (IDS, MASK), layers=LAYERS, heads=HEADS)
    return run_onnx_bytes(built.onnx, ids, mask)


def some_ids() -> Array:
    return np.random.default_rng(1).integers(0, WORDS, SHAPE)


def test_it_computes_what_bert_does() -> None:
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    found, expected = run(some_ids(), mask), expected_of(random_weights(), some_ids(), mask)
    for ours, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5)


def test_words_that_the_mask_hides_do_not_count() -> None:
    mask = np.array([[1, 1, 1, 0, 0]] * 2)
    other = some_ids()
    other[:, 3:] = (other[:, 3:] + 1) % WORDS
    (states, vectors), (other_states, other_vectors) = run(some_ids(), mask), run(other, mask)
    np.testing.assert_array_equal(vectors, other_vectors)
    np.testing.assert_array_equal(states[:, :3], other_states[:, :3])
    assert not np.array_equal(states[:, 3:], other_states[:, 3:])


def test_equal_weights_give_equal_bytes() -> None:
    first, second = (write_sentence_encoder(random_weights(), (IDS, MASK), layers=1, heads=HEADS) for _ in range(2))
    assert first == second
