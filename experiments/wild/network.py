"""A small network of texts with `pos_weight`, as the documentation of torch shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.core.weights import balance_ratios

N_DIMENSIONS = 64  # of word vectors and of the hidden layer
N_EPOCHS = 5
BATCH = 128
LEARNING_RATE = 1e-3
SEED = 42
SETTINGS = {
    "words": "in at least 3 texts",
    "dimensions": N_DIMENSIONS,
    "epochs": N_EPOCHS,
    "batch": BATCH,
    "learning_rate": LEARNING_RATE,
    "seed": SEED,
}

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def score_with_network(
    texts: list[str], truth: Bools, others: Sequence[list[str]], weight: str
) -> list[Floats]:
    """Probabilities of other texts: mean of word vectors, one hidden layer, weighted BCE."""
    import torch
    from sklearn.feature_extraction.text import CountVectorizer

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    words = CountVectorizer(min_df=3).fit(texts)
    net = torch.nn.Sequential(
        torch.nn.Linear(N_DIMENSIONS, N_DIMENSIONS),
        torch.nn.ReLU(),
        torch.nn.Linear(N_DIMENSIONS, truth.shape[1]),
    )
    vectors = torch.nn.EmbeddingBag(len(words.vocabulary_), N_DIMENSIONS)
    ratios = balance_ratios(truth.sum(axis=0), len(truth))
    loss = torch.nn.BCEWithLogitsLoss(
        pos_weight=torch.tensor(ratios, dtype=torch.float32) if weight == "balanced" else None
    )
    optimiser = torch.optim.Adam([*vectors.parameters(), *net.parameters()], lr=LEARNING_RATE)
    rows, target = _word_lists(words, texts), torch.tensor(truth, dtype=torch.float32)
    for _ in range(N_EPOCHS):
        order = torch.randperm(len(texts)).tolist()
        for start in range(0, len(texts), BATCH):
            batch = order[start : start + BATCH]
            optimiser.zero_grad()
            loss(net(vectors(*_pack(rows, batch))), target[batch]).backward()
            optimiser.step()
    scores = []
    with torch.no_grad():
        for each in others:
            logits = net(vectors(*_pack(_word_lists(words, each), range(len(each)))))
            scores.append(torch.sigmoid(logits.double()).numpy())
    return scores


def _word_lists(words: Any, texts: list[str]) -> list[list[int]]:
    """Numbers of the known words of each text, in order."""
    analyse, vocabulary = words.build_analyzer(), words.vocabulary_
    return [[vocabulary[word] for word in analyse(text) if word in vocabulary] for text in texts]


def _pack(rows: list[list[int]], chosen: Sequence[int]) -> tuple[Any, Any]:
    """Some rows as `EmbeddingBag` wants them: all words, and where each row starts."""
    import torch

    sizes = [len(rows[row]) for row in chosen]
    starts = np.cumsum([0, *sizes[:-1]])
    numbers = [word for row in chosen for word in rows[row]]
    return torch.tensor(numbers, dtype=torch.int64), torch.tensor(starts, dtype=torch.int64)
