"""Arms of the matched-pair study: which there can be, and all that their scores depend on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from experiments.store import WEIGHTS, check_names
from oddslip.learners.backends.base import preset_parameters
from oddslip.learners.pairs import CAPS

SEED = 42
LEARNERS = {"lightgbm": "paper-booster", "mlp": "paper-mlp-pairs"}
DRAWS = (0, 1, 2, 3)  # 0: all training rows; else a draw, whose seed is one less
DRAWN_SHARE = 0.9  # chance of a training row to be drawn (section 3, Robustness)
# What a study is made of, the pairs and the caps first.
PARTS = (
    "ladder",
    "caps",
    "splits",
    "choices",
    "doses",
    "draws",
    "earlier",
    "again",
    "all-products",
)
ON_SCORES = ("splits", "choices", "again")  # parts that look again at arms of other parts
# The supplement's earlier configuration. Its seeds were 42 + j for label j; ours is one for all.
EARLIER = {
    "num_iterations": 100,
    "bagging_fraction": 0.8,
    "bagging_freq": 5,
    "feature_fraction": 0.9,
}
AGAIN = "again"
VARIANTS = ("", "earlier", AGAIN)


@dataclass(frozen=True, slots=True)
class Arm:
    """One model of the study. ``cap`` is that of the leaf step, ``draw`` a draw of the rows.

    ``variant`` is "earlier" for the supplement's earlier configuration, "again" for the same model
    trained a second time.

    Examples
    --------
    >>> Arm("lightgbm", "r", cap=0.3).key
    'lightgbm-r-cap-0.3'
    >>> Arm("lightgbm", "r", cap=0.3).twin.key
    'lightgbm-1-cap-0.3'
    """

    learner: str
    weight: str
    cap: float | None = None
    draw: int = 0
    all_products: bool = False
    variant: str = ""

    @property
    def key(self) -> str:
        """The name of its cell."""
        parts = [self.learner, self.weight]
        parts += [] if self.cap is None else [f"cap-{self.cap:g}"]
        parts += [f"draw-{self.draw}"] if self.draw else []
        parts += ["all-products"] if self.all_products else []
        parts += [self.variant] if self.variant else []
        return "-".join(parts)

    @property
    def weighted(self) -> bool:
        """Whether it has a weight."""
        return self.weight != "1"

    @property
    def twin(self) -> Arm:
        """The same arm without a weight."""
        return replace(self, weight="1")

    @property
    def options(self) -> str:
        """What the command line says to compute just this arm."""
        options = f"--learner {self.learner} --weight {self.weight}"
        if self.all_products:
            return f"{options} --part all-products"
        if self.variant:
            return f"{options} --part {self.variant}"
        cap = "none" if self.cap is None else f"{self.cap:g}"
        return f"{options} --cap {cap} --draw {self.draw}"

    @property
    def mode(self) -> Literal["grouped", "exact"]:
        """How labels are trained: those of a group cannot have features drawn for each alone."""
        return "exact" if self.variant == "earlier" else "grouped"

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the learner."""
        parameters = preset_parameters(LEARNERS[self.learner])
        return parameters | EARLIER if self.variant == "earlier" else parameters

    def configuration(self) -> dict[str, Any]:
        """All that its scores depend on but the data."""
        settings = {
            "learner": self.learner,
            "preset": LEARNERS[self.learner],
            "parameters": self.parameters,
            "mode": self.mode,
            "weight": WEIGHTS[self.weight],
            "cap": self.cap,
            "draw": self.draw,
            "drawn_share": DRAWN_SHARE if self.draw else 1.0,
            "seed": SEED,
        }
        if self.draw:
            settings["drawn_by"] = f"chance, seed {self.draw - 1}"
        return settings | ({"variant": self.variant} if self.variant else {})

    def budget(self) -> dict[str, Any]:
        """What `oddslip.diagnose` wants to know for the step budget; nothing for an MLP."""
        if self.learner != "lightgbm":
            return {}
        return {
            "rounds": self.parameters["num_iterations"],
            "learning_rate": self.parameters["learning_rate"],
            "max_delta_step": self.cap or 0.0,
        }


def _part_arms(part: str) -> Iterator[Arm]:
    """Arms of a part, a twin always before its weighted arm."""
    if part in ("ladder", "splits", "again"):
        yield from (Arm(learner, weight) for learner in LEARNERS for weight in ("1", "r"))
    elif part == "choices":
        yield from (*_part_arms("ladder"), *_part_arms("caps"))
    elif part == "caps":
        caps = [cap for cap in CAPS if cap is not None]
        yield from (Arm("lightgbm", weight, cap=cap) for cap in caps for weight in ("1", "r"))
    elif part == "earlier":
        yield Arm("lightgbm", "1", variant="earlier")
    elif part == "doses":
        doses = [weight for weight in WEIGHTS if weight not in ("1", "r")]
        yield from (Arm(learner, weight) for learner in LEARNERS for weight in doses)
    elif part == "draws":
        draws = [draw for draw in DRAWS if draw]
        yield from (Arm("lightgbm", weight, draw=draw) for draw in draws for weight in ("1", "r"))
    else:
        yield from (Arm("mlp", weight, all_products=True) for weight in ("1", "r"))


def distinct_arms() -> list[Arm]:
    """Every arm a study can have, once, in the order they are computed."""
    return list(dict.fromkeys(arm for part in PARTS for arm in _part_arms(part)))


def plan_arms(
    parts: Sequence[str] = PARTS,
    *,
    learners: Collection[str] | None = None,
    weights: Collection[str] | None = None,
    caps: Collection[float | None] | None = None,
    draws: Collection[int] | None = None,
) -> list[tuple[str, Arm]]:
    """(part, arm) in the order they are computed; what is not None narrows them down.

    Examples
    --------
    >>> [arm.key for _, arm in plan_arms(["ladder"], learners=["mlp"])]
    ['mlp-1', 'mlp-r']
    """
    check_names("parts", parts, PARTS)
    check_names("learners", tuple(learners or ()), LEARNERS)
    check_names("weights", tuple(weights or ()), WEIGHTS)
    check_names("caps", tuple(caps or ()), CAPS)
    check_names("draws", tuple(draws or ()), DRAWS)
    return [
        (part, arm)
        for part in PARTS
        if part in parts
        for arm in _part_arms(part)
        if (learners is None or arm.learner in learners)
        and (weights is None or arm.weight in weights)
        and (caps is None or arm.cap in caps)
        and (draws is None or arm.draw in draws)
        # A cap or a draw that is asked for is one of the configuration of Table 1.
        and (not arm.variant or (caps is None and draws is None))
    ]
