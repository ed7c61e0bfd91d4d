"""L2-regularised logistic regression of all labels of a group at once, by Newton's method.

The loss is scikit-learn's: the sum over rows of weight times log-loss, plus the squared
coefficients over 2C; the intercept is free. All labels of a group share each product with X, and
every label is solved until its gradient is zero to rounding: outright where features are few, by
conjugate gradients otherwise. An early stop would leave two arms
apart by more than their weights: scikit-learn's default tolerance leaves margins of weighted
labels off by whole units. Who wants just those asks for ``solver="lbfgs"``.
"""

from __future__ import annotations

import io
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from oddslip.core.arguments import check_whole, is_number
from oddslip.errors import InvalidInput
from oddslip.learners.backends.base import Backend
from oddslip.learners.model_validation.arrays import check_shapes, read_arrays

Array = NDArray[np.float64]
_BYTES_PER_CELL = 96  # a dozen float64 arrays of shape (rows, labels) at the worst moment
_SOLVERS = ("newton", "lbfgs")
_ROUNDING = 1e-14
_CG_STEPS = 500
_ROWS = 2048  # of X scaled at a time
_FEW_FEATURES = 1000  # up to which Newton's equations of a dense X are solved outright


class Design(NamedTuple):
    """X with a column of ones, seen through a standardisation that is never carried out."""

    X: Any
    means: Array
    scales: Array
    squares: Array  # of the standardised columns, summed
    Xt: Any = None  # X transposed, where its products are many

    def forward(self, W: Array) -> Array:
        """Margins of coefficients, the intercept last."""
        coefficients = W[:-1] / self.scales
        return np.asarray(self.X @ coefficients + (W[-1] - self.means @ coefficients))

    def backward(self, R: Array) -> Array:
        """The transpose of `forward`."""
        totals = R.sum(axis=0)
        transposed = self.X.T if self.Xt is None else self.Xt
        slopes = (transposed @ R - np.outer(self.means, totals)) / self.scales
        return np.vstack([slopes, totals])


class Coefficients(NamedTuple):
    """Margins are ``X @ slopes + intercepts``."""

    slopes: Array
    intercepts: Array


class LogisticBackend(Backend):
    """One-vs-rest logistic regression.

    Parameters are ``C`` (1.0, the inverse of the penalty), ``standardise`` (False; True gives
    every feature mean 0 and deviation 1 over the training rows first, sparse X stays sparse),
    ``tol`` (1e-8, the largest gradient left), ``max_iter`` (200 Newton steps) and ``solver``
    ("newton"; "lbfgs" is scikit-learn's ``LogisticRegression``, label by label: ``tol`` is then
    the largest gradient of the mean loss, ``max_iter`` counts its steps. A sparse X that is to be
    standardised stays sparse: the same steps, in sums of another order).
    """

    name = "logistic"
    extension = ".npz"

    def defaults(self) -> dict[str, Any]:
        """Parameters and their default values."""
        return {
            "C": 1.0,
            "standardise": False,
            "tol": 1e-8,
            "max_iter": 200,
            "solver": "newton",
        }

    def versions(self) -> dict[str, str]:
        """Versions of the packages on which the trained bits depend."""
        import sklearn

        return {"numpy": np.__version__, "scikit-learn": sklearn.__version__}

    def prepare(self, X: Any, parameters: dict[str, Any]) -> Design:
        """X in float64, with the means and scales of its columns."""
        for name in ("C", "tol"):
            if not (is_number(parameters[name]) and 0 < parameters[name] < np.inf):
                raise InvalidInput(f"{name} must be above 0, got {name}={parameters[name]!r:.60}.")
        check_whole("max_iter", parameters["max_iter"], 1)
        if parameters["solver"] not in _SOLVERS:
            raise InvalidInput(
                f"solver must be one of {', '.join(_SOLVERS)}, got {parameters['solver']!r:.60}."
            )
        rows = _as_float64(X)
        cells = rows.data if sparse.issparse(rows) else rows
        if not np.isfinite(cells).all():
            raise InvalidInput(
                "X must hold finite numbers for logistic regression, got NaN or infinite cells. "
                "Fill them first."
            )
        n_rows, n_features = rows.shape
        means, scales = np.zeros(n_features), np.ones((n_features, 1))
        squares = _sum_squares(rows)
        if parameters["standardise"]:
            means, scales[:, 0] = column_moments(rows)
            squares = np.full(n_features, float(n_rows))
            if parameters["solver"] == "lbfgs" and not sparse.issparse(rows):
                rows = (rows - means) / scales[:, 0]  # sums over cells are carried out, as there
        return Design(rows, means, scales, squares)

    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """Labels to train together so that a group's working memory stays in the budget."""
        per_label = _BYTES_PER_CELL * max(1, n_rows + n_features)
        return int(max(1, min(n_labels, memory_bytes // per_label)))

    def train(
        self,
        prepared: Design,
        Y: NDArray[np.uint8],
        weights: NDArray[np.float64],
        parameters: dict[str, Any],
        seed: int,
    ) -> Coefficients:
        """Coefficients of a group: ``Y`` of shape (n_rows, g), no label all 0 or all 1."""
        penalties = np.full((prepared.X.shape[1] + 1, 1), 1 / float(parameters["C"]))
        penalties[-1] = 0
        truth = np.ascontiguousarray(Y, np.float64)
        shares = 1 + truth * (np.asarray(weights, np.float64) - 1)
        if parameters["solver"] == "lbfgs":
            standardised = parameters["standardise"] and sparse.issparse(prepared.X)
            follow = partial(_follow_unseen, prepared) if standardised else _follow
            W = follow(prepared.X, truth, shares, parameters)
        else:
            W = _solve(prepared, truth, shares, penalties, parameters)
        slopes = W[:-1] / prepared.scales
        return Coefficients(slopes, W[-1] - prepared.means @ slopes)

    def predict_margin(self, model: Coefficients, X: Any) -> NDArray[np.float64]:
        """Raw log-odds of a block of rows, shape (rows, g)."""
        return np.asarray(_as_float64(X) @ model.slopes + model.intercepts)

    def dump(self, model: Coefficients) -> bytes:
        """The coefficients as .npz, without pickle."""
        file = io.BytesIO()
        np.savez(file, slopes=model.slopes, intercepts=model.intercepts)
        return file.getvalue()

    def load(
        self, data: bytes, n_labels: int | None = None, n_features: int | None = None
    ) -> Coefficients:
        """The model that was dumped."""
        arrays = read_arrays(data)
        check_shapes(arrays, {"slopes": (n_features, n_labels), "intercepts": (n_labels,)})
        check_shapes(arrays, {"slopes": (None, arrays["intercepts"].size), "intercepts": (None,)})
        return Coefficients(arrays["slopes"], arrays["intercepts"])


def _solve(
    design: Design, truth: Array, shares: Array, penalties: Array, parameters: dict[str, Any]
) -> Array:
    """Coefficients of all labels. Labels leave as soon as they are done."""
    mean = (shares * truth).sum(axis=0) / shares.sum(axis=0)
    W = np.zeros((penalties.size, truth.shape[1]))
    W[-1] = np.log(mean) - np.log1p(-mean)  # the optimum if no feature said anything
    # No gradient can be told from zero below the rounding of the sums it is made of.
    size = np.sqrt(max(1.0, design.squares.max(initial=0)) * (shares**2).sum(axis=0))
    tol = np.maximum(float(parameters["tol"]), _ROUNDING * size)
    live, margins = np.arange(W.shape[1]), design.forward(W)
    few = not sparse.issparse(design.X) and design.X.shape[1] <= _FEW_FEATURES
    take_step = _newton_step if few else _conjugate_step
    for _ in range(int(parameters["max_iter"])):
        chances = expit(margins)
        gradient = design.backward(shares * (chances - truth)) + penalties * W[:, live]
        going = np.abs(gradient).max(axis=0) > tol[live]
        if not going.all():
            live, margins, truth = live[going], margins[:, going], truth[:, going]
            shares, chances, gradient = shares[:, going], chances[:, going], gradient[:, going]
        if live.size == 0:
            return W
        curvature = shares * chances * (1 - chances)
        step = take_step(design, curvature, gradient, penalties)
        W[:, live], margins = _descend(
            W[:, live], margins, step, design.forward(step), gradient, truth, shares, penalties
        )
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"{live.size} labels were not solved after max_iter={parameters['max_iter']} steps. "
        "Raise max_iter, set standardise=True, or lower C.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return W


def _follow(X: Any, truth: Array, shares: Array, parameters: dict[str, Any]) -> Array:
    """Coefficients of each label where scikit-learn's default solver stops."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=float(parameters["C"]),
        tol=float(parameters["tol"]),
        max_iter=int(parameters["max_iter"]),
    )
    W = np.empty((X.shape[1] + 1, truth.shape[1]))
    for label in range(truth.shape[1]):
        model.fit(X, truth[:, label], sample_weight=shares[:, label])
        W[:-1, label], W[-1, label] = model.coef_[0], model.intercept_[0]
    return W


def _follow_unseen(
    design: Design, X: Any, truth: Array, shares: Array, parameters: dict[str, Any]
) -> Array:
    """As `_follow`, where a sparse X is standardised: in products, never in its cells."""
    from scipy.optimize import minimize

    design = design._replace(X=X, Xt=X.T.tocsr())
    W = np.zeros((X.shape[1] + 1, truth.shape[1]))
    # Where scikit-learn 1.8 lets it stop.
    options = {"maxiter": int(parameters["max_iter"]), "gtol": float(parameters["tol"]),
               "maxls": 50, "ftol": 64 * np.finfo(float).eps}  # fmt: skip
    for label in range(truth.shape[1]):
        one = slice(label, label + 1)
        total = shares[:, label].sum()
        told = design, truth[:, one], shares[:, one] / total, 1 / (float(parameters["C"]) * total)
        W[:, label] = minimize(
            _mean_loss, W[:, label], told, "L-BFGS-B", jac=True, options=options
        ).x
    return W


def _mean_loss(
    w: Array, design: Design, true: Array, shares: Array, penalty: float
) -> tuple[float, Array]:
    """The loss of one label and its gradient; shares of the rows add up to 1."""
    margins = design.forward(w[:, None])
    gradient = design.backward(shares * (expit(margins) - true))[:, 0]
    gradient[:-1] += penalty * w[:-1]
    loss = (shares * (np.logaddexp(0, margins) - true * margins)).sum()
    return float(loss + 0.5 * penalty * (w[:-1] @ w[:-1])), gradient


def _newton_step(design: Design, curvature: Array, gradient: Array, penalties: Array) -> Array:
    """The Newton step of each label by Cholesky: rare labels with large weights need it exact."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    step = np.empty_like(gradient)
    for label in range(gradient.shape[1]):
        matrix = _hessian(design, curvature[:, label]) + np.diag(penalties[:, 0])
        # A nudge of rounding size where a label's curvature is all but zero.
        diagonal = np.einsum("ii->i", matrix)
        diagonal += 1e-13 * diagonal.max() + np.finfo(float).tiny
        try:
            step[:, label] = cho_solve(cho_factor(matrix, lower=True), -gradient[:, label])
        except LinAlgError:
            one = slice(label, label + 1)
            step[:, one] = _conjugate_step(design, curvature[:, one], gradient[:, one], penalties)
    return step


def _hessian(design: Design, curvature: Array) -> Array:
    """Lower triangle of the second derivatives of one label's loss, the intercept last."""
    from scipy.linalg.blas import dsyrk

    n_features = design.X.shape[1]
    products = np.zeros((n_features, n_features), order="F")
    for start in range(0, len(curvature), _ROWS):
        rows = slice(start, start + _ROWS)
        scaled = design.X[rows] * np.sqrt(curvature[rows])[:, None]
        products = dsyrk(1.0, scaled.T, beta=1.0, c=products, lower=True, overwrite_c=True)
    sums, total, means = design.X.T @ curvature, curvature.sum(), design.means
    mixed = np.outer(means, sums)
    scales = design.scales[:, 0]
    matrix = np.zeros((n_features + 1, n_features + 1))
    matrix[:-1, :-1] = products - mixed - mixed.T + total * np.outer(means, means)
    matrix[:-1, :-1] /= np.outer(scales, scales)
    matrix[-1, :-1] = (sums - total * means) / scales
    matrix[-1, -1] = total
    return matrix


def _conjugate_step(design: Design, curvature: Array, gradient: Array, penalties: Array) -> Array:
    """Conjugate gradients towards the Newton step, for all labels side by side."""
    n_rows = float(len(curvature))
    # The true diagonal would cost another pass over X; the columns' squares say nearly as much.
    squares = np.append(design.squares, n_rows)[:, None]
    diagonal = squares * curvature.mean(axis=0) + penalties + np.finfo(float).tiny
    step, left = np.zeros_like(gradient), -gradient
    first = np.sqrt((left**2).sum(axis=0))
    goal = first * np.minimum(0.25, np.sqrt(first / (first + n_rows)))
    scaled = left / diagonal
    along, energy = scaled, (left * scaled).sum(axis=0)
    going = np.ones(first.size, bool)
    for _ in range(_CG_STEPS):
        image = design.backward(curvature * design.forward(along)) + penalties * along
        bend = (along * image).sum(axis=0)
        going &= bend > 0
        length = np.divide(energy, bend, out=np.zeros_like(bend), where=going)
        step = step + length * along
        left = left - length * image
        going &= np.sqrt((left**2).sum(axis=0)) > goal
        if not going.any():
            break
        scaled = left / diagonal
        fresh = (left * scaled).sum(axis=0)
        turn = np.divide(fresh, energy, out=np.zeros_like(fresh), where=energy > 0)
        along, energy = scaled + turn * along, fresh
    return step


def _descend(
    W: Array,
    margins: Array,
    step: Array,
    moved: Array,
    gradient: Array,
    truth: Array,
    shares: Array,
    penalties: Array,
) -> tuple[Array, Array]:
    """Go along the step, and half as far as long as a label's loss does not fall enough."""

    def losses(far: Array) -> Array:
        here, there = W + far * step, margins + far * moved
        # Not logaddexp(0, there) - truth * there: what cancels there is lost to rounding.
        rows = shares * np.logaddexp(0, sides * there)
        return np.asarray(rows.sum(axis=0) + 0.5 * (penalties * here**2).sum(axis=0))

    sides = 1 - 2 * truth
    slope = (gradient * step).sum(axis=0)
    far = np.ones(step.shape[1])
    before = losses(np.zeros_like(far))
    for _ in range(40):
        short = losses(far) > before + 1e-4 * far * slope + 1e-12 * np.abs(before)
        if not short.any():
            break
        far[short] /= 2
    return W + far * step, margins + far * moved


def _as_float64(X: Any) -> Any:
    if sparse.issparse(X):
        return X.tocsr().astype(np.float64, copy=False)
    return np.asarray(X, np.float64)


def column_moments(rows: Any) -> tuple[Array, Array]:
    """Means and population deviations of the columns; a constant column has deviation 1."""
    means = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
    if sparse.issparse(rows):
        mean_squares = _sum_squares(rows) / rows.shape[0]
        spread, noise = np.sqrt(np.maximum(mean_squares - means**2, 0)), 1e-7
    else:
        spread, noise = np.asarray(rows.std(axis=0, dtype=np.float64)), 1e-13
    # What rounding leaves of a constant column is not to be blown up.
    return means, np.where(spread <= noise * np.abs(means), 1.0, spread)


def _sum_squares(rows: Any) -> Array:
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=0, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("ij,ij->j", rows, rows))


BACKEND = LogisticBackend()
