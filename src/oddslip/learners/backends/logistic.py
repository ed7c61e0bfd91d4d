"""L2-regularised logistic regression of all labels of a group at once, by Newton's method.

The loss is scikit-learn's: the sum over rows of weight times log-loss, plus the squared
coefficients over 2C, without a penalty on the intercept. All labels of a group share each product
with X, and every label is solved until its gradient is zero up to rounding: directly with few
features, by conjugate gradients otherwise. An early stop would add differences between two arms
that are not due to the weights: scikit-learn's default tolerance leaves errors of whole units in
the margins of weighted labels. ``solver="lbfgs"`` reproduces scikit-learn.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from oddslip.core.arguments import check_whole, is_number
from oddslip.core.types import FeaturesLike, Floats
from oddslip.errors import InvalidInput
from oddslip.learners.backends.base import Backend, Parameters
from oddslip.learners.model_validation.arrays import check_shapes, pack_npz, read_arrays

Array = Floats
_BYTES_PER_CELL = 96  # at most a dozen float64 arrays of shape (rows, labels)
_SOLVERS = ("newton", "lbfgs")
_ROUNDING = 1e-14
_CG_STEPS = 500
_ROWS = 2048  # rows of X that are scaled at a time
_FEW_FEATURES = 1000  # up to this many, Newton's equations of a dense X are solved directly


class Design(NamedTuple):
    """X with a column of ones, standardised implicitly: its cells are not changed."""

    X: FeaturesLike
    means: Array
    scales: Array
    squares: Array  # sums of squares of the standardised columns
    Xt: FeaturesLike = None  # X transposed, if many products need it

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
    every feature mean 0 and deviation 1 over the training rows first; a sparse X stays sparse),
    ``tol`` (1e-8, the largest gradient at the end), ``max_iter`` (200 Newton steps) and ``solver``
    ("newton"; "lbfgs" is scikit-learn's ``LogisticRegression``, label by label: ``tol`` is then
    the largest gradient of the mean loss, and ``max_iter`` counts its steps).
    """

    name = "logistic"
    extension = ".npz"

    def defaults(self) -> Parameters:
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

    def prepare(self, X: FeaturesLike, parameters: Parameters) -> Design:
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
        check_finite(rows, "logistic regression")
        n_rows, n_features = rows.shape
        means, scales = np.zeros(n_features), np.ones((n_features, 1))
        squares = _sum_squares(rows)
        if parameters["standardise"]:
            means, scales[:, 0] = column_moments(rows)
            squares = np.full(n_features, float(n_rows))
            if parameters["solver"] == "lbfgs" and not sparse.issparse(rows):
                rows = (rows - means) / scales[:, 0]  # explicitly, as scikit-learn's users do
        return Design(rows, means, scales, squares)

    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """Labels per group, so that the working memory of a group stays in the budget."""
        per_label = _BYTES_PER_CELL * max(1, n_rows + n_features)
        return int(max(1, min(n_labels, memory_bytes // per_label)))

    def train(
        self,
        prepared: Design,
        Y: NDArray[np.uint8],
        weights: Floats,
        parameters: Parameters,
        seed: int,
    ) -> Coefficients:
        """Train a group; ``Y`` has shape (n_rows, g), no label all 0 or all 1."""
        penalties = np.full((prepared.X.shape[1] + 1, 1), 1 / float(parameters["C"]))
        penalties[-1] = 0
        truth = np.ascontiguousarray(Y, np.float64)
        row_weights = 1 + truth * (np.asarray(weights, np.float64) - 1)
        if parameters["solver"] == "lbfgs":
            standardised = parameters["standardise"] and sparse.issparse(prepared.X)
            fit = partial(_fit_lbfgs_standardised, prepared) if standardised else _fit_lbfgs
            W = fit(prepared.X, truth, row_weights, parameters)
        else:
            W = _solve(prepared, truth, row_weights, penalties, parameters)
        slopes = W[:-1] / prepared.scales
        return Coefficients(slopes, W[-1] - prepared.means @ slopes)

    def predict_margin(self, model: Coefficients, X: FeaturesLike) -> Floats:
        """Raw log-odds of a block of rows, shape (rows, g)."""
        return np.asarray(_as_float64(X) @ model.slopes + model.intercepts)

    def dump(self, model: Coefficients) -> bytes:
        """The coefficients as .npz, without pickle."""
        return pack_npz(model._asdict())

    def load(
        self, data: bytes, n_labels: int | None = None, n_features: int | None = None
    ) -> Coefficients:
        """The dumped model."""
        arrays = read_arrays(data)
        check_shapes(arrays, {"slopes": (n_features, n_labels), "intercepts": (n_labels,)})
        check_shapes(arrays, {"slopes": (None, arrays["intercepts"].size), "intercepts": (None,)})
        return Coefficients(arrays["slopes"], arrays["intercepts"])


def _solve(
    design: Design, truth: Array, row_weights: Array, penalties: Array, parameters: Parameters
) -> Array:
    """Coefficients of all labels by Newton's method. Converged labels drop out."""
    mean = (row_weights * truth).sum(axis=0) / row_weights.sum(axis=0)
    W = np.zeros((penalties.size, truth.shape[1]))
    W[-1] = np.log(mean) - np.log1p(-mean)  # the optimum without features
    # A gradient below the rounding error of its sums is indistinguishable from zero.
    size = np.sqrt(max(1.0, design.squares.max(initial=0)) * (row_weights**2).sum(axis=0))
    tol = np.maximum(float(parameters["tol"]), _ROUNDING * size)
    live, margins = np.arange(W.shape[1]), design.forward(W)
    few_features = not sparse.issparse(design.X) and design.X.shape[1] <= _FEW_FEATURES
    take_step = _newton_step if few_features else _conjugate_step
    for _ in range(int(parameters["max_iter"])):
        probabilities = expit(margins)
        gradient = design.backward(row_weights * (probabilities - truth)) + penalties * W[:, live]
        active = np.abs(gradient).max(axis=0) > tol[live]
        if not active.all():
            live, margins, truth = live[active], margins[:, active], truth[:, active]
            row_weights, probabilities, gradient = (
                row_weights[:, active],
                probabilities[:, active],
                gradient[:, active],
            )
        if live.size == 0:
            return W
        curvature = row_weights * probabilities * (1 - probabilities)
        step = take_step(design, curvature, gradient, penalties)
        W[:, live], margins = _descend(
            W[:, live], margins, step, design.forward(step), gradient, truth, row_weights, penalties
        )
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"{live.size} labels were not solved after max_iter={parameters['max_iter']} steps. "
        "Raise max_iter, set standardise=True, or lower C.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return W


def _fit_lbfgs(X: FeaturesLike, truth: Array, row_weights: Array, parameters: Parameters) -> Array:
    """Coefficients of each label by scikit-learn's default solver."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=float(parameters["C"]),
        tol=float(parameters["tol"]),
        max_iter=int(parameters["max_iter"]),
    )
    W = np.empty((X.shape[1] + 1, truth.shape[1]))
    for label in range(truth.shape[1]):
        model.fit(X, truth[:, label], sample_weight=row_weights[:, label])
        W[:-1, label], W[-1, label] = model.coef_[0], model.intercept_[0]
    return W


def _fit_lbfgs_standardised(
    design: Design, X: FeaturesLike, truth: Array, row_weights: Array, parameters: Parameters
) -> Array:
    """As `_fit_lbfgs`, with a sparse X that is standardised implicitly."""
    from scipy.optimize import minimize

    design = design._replace(X=X, Xt=X.T.tocsr())
    W = np.zeros((X.shape[1] + 1, truth.shape[1]))
    # The stopping rule of scikit-learn 1.8.
    options = {
        "maxiter": int(parameters["max_iter"]),
        "gtol": float(parameters["tol"]),
        "maxls": 50,
        "ftol": 64 * np.finfo(float).eps,
    }
    for label in range(truth.shape[1]):
        one = slice(label, label + 1)
        total = row_weights[:, label].sum()
        penalty = 1 / (float(parameters["C"]) * total)
        data = design, truth[:, one], row_weights[:, one] / total, penalty
        W[:, label] = minimize(
            _mean_loss, W[:, label], data, "L-BFGS-B", jac=True, options=options
        ).x
    return W


def _mean_loss(
    w: Array, design: Design, truth: Array, row_weights: Array, penalty: float
) -> tuple[float, Array]:
    """The loss of one label and its gradient; the weights of the rows add up to 1."""
    margins = design.forward(w[:, None])
    gradient = design.backward(row_weights * (expit(margins) - truth))[:, 0]
    gradient[:-1] += penalty * w[:-1]
    loss = (row_weights * (np.logaddexp(0, margins) - truth * margins)).sum()
    return float(loss + 0.5 * penalty * (w[:-1] @ w[:-1])), gradient


def _newton_step(design: Design, curvature: Array, gradient: Array, penalties: Array) -> Array:
    """The exact Newton step of each label, which rare labels with large weights need."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    step = np.empty_like(gradient)
    for label in range(gradient.shape[1]):
        matrix = _hessian(design, curvature[:, label]) + np.diag(penalties[:, 0])
        # Add a term of rounding size, in case the curvature of a label is nearly zero.
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
    """The Newton step of all labels by conjugate gradients."""
    n_rows = float(len(curvature))
    # The exact diagonal would cost another pass over X; this approximation is nearly as good.
    squares = np.append(design.squares, n_rows)[:, None]
    diagonal = squares * curvature.mean(axis=0) + penalties + np.finfo(float).tiny
    step, remainder = np.zeros_like(gradient), -gradient
    initial_norm = np.sqrt((remainder**2).sum(axis=0))
    goal = initial_norm * np.minimum(0.25, np.sqrt(initial_norm / (initial_norm + n_rows)))
    scaled = remainder / diagonal
    direction, energy = scaled, (remainder * scaled).sum(axis=0)
    active = np.ones(initial_norm.size, bool)
    for _ in range(_CG_STEPS):
        image = design.backward(curvature * design.forward(direction)) + penalties * direction
        bend = (direction * image).sum(axis=0)
        active &= bend > 0
        length = np.divide(energy, bend, out=np.zeros_like(bend), where=active)
        step = step + length * direction
        remainder = remainder - length * image
        active &= np.sqrt((remainder**2).sum(axis=0)) > goal
        if not active.any():
            break
        scaled = remainder / diagonal
        new_energy = (remainder * scaled).sum(axis=0)
        ratio = np.divide(new_energy, energy, out=np.zeros_like(new_energy), where=energy > 0)
        direction, energy = scaled + ratio * direction, new_energy
    return step


def _descend(
    W: Array,
    margins: Array,
    step: Array,
    margin_step: Array,
    gradient: Array,
    truth: Array,
    row_weights: Array,
    penalties: Array,
) -> tuple[Array, Array]:
    """Backtracking line search: halve a label's step until its loss falls enough."""

    def losses(length: Array) -> Array:
        here, there = W + length * step, margins + length * margin_step
        # Not logaddexp(0, there) - truth * there, which loses digits by cancellation.
        rows = row_weights * np.logaddexp(0, signs * there)
        return np.asarray(rows.sum(axis=0) + 0.5 * (penalties * here**2).sum(axis=0))

    signs = 1 - 2 * truth
    slope = (gradient * step).sum(axis=0)
    length = np.ones(step.shape[1])
    initial = losses(np.zeros_like(length))
    for _ in range(40):
        too_long = losses(length) > initial + 1e-4 * length * slope + 1e-12 * np.abs(initial)
        if not too_long.any():
            break
        length[too_long] /= 2
    return W + length * step, margins + length * margin_step


def _as_float64(X: FeaturesLike) -> FeaturesLike:
    if sparse.issparse(X):
        return X.tocsr().astype(np.float64, copy=False)
    return np.asarray(X, np.float64)


def check_finite(rows: FeaturesLike, learner: str) -> None:
    """Raise for features that are not finite."""
    if not np.isfinite(rows.data if sparse.issparse(rows) else rows).all():
        raise InvalidInput(
            f"X must hold finite numbers for {learner}, got NaN or infinite cells. Fill them first."
        )


def column_moments(rows: FeaturesLike) -> tuple[Array, Array]:
    """Means and population deviations of the columns; a constant column has deviation 1."""
    means = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
    if sparse.issparse(rows):
        mean_squares = _sum_squares(rows) / rows.shape[0]
        spread, noise = np.sqrt(np.maximum(mean_squares - means**2, 0)), 1e-7
    else:
        spread, noise = np.asarray(rows.std(axis=0, dtype=np.float64)), 1e-13
    # Do not scale up the rounding errors of a constant column.
    return means, np.where(spread <= noise * np.abs(means), 1.0, spread)


def _sum_squares(rows: FeaturesLike) -> Array:
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=0, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("ij,ij->j", rows, rows))


BACKEND = LogisticBackend()
