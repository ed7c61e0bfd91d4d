"""The columns of Santander's training file, and what becomes of each."""

from __future__ import annotations

from typing import Literal, NamedTuple

_PRODUCTS_TEXT = (
    "ind_ahor_fin_ult1 ind_aval_fin_ult1 ind_cco_fin_ult1 ind_cder_fin_ult1 ind_cno_fin_ult1 "
    "ind_ctju_fin_ult1 ind_ctma_fin_ult1 ind_ctop_fin_ult1 ind_ctpp_fin_ult1 "
    "ind_deco_fin_ult1 ind_deme_fin_ult1 ind_dela_fin_ult1 ind_ecue_fin_ult1 "
    "ind_fond_fin_ult1 ind_hip_fin_ult1 ind_plan_fin_ult1 ind_pres_fin_ult1 ind_reca_fin_ult1 "
    "ind_tjcr_fin_ult1 ind_valo_fin_ult1 ind_viv_fin_ult1 ind_nomina_ult1 ind_nom_pens_ult1 "
    "ind_recibo_ult1"
)
PRODUCTS = tuple(_PRODUCTS_TEXT.split(" "))
# Kaggle's file leaves these two out where payroll is not known. An empty field elsewhere is a
# line cut short.
MAY_BE_EMPTY = frozenset({"ind_nomina_ult1", "ind_nom_pens_ult1"})
KEYS = ("fecha_dato", "ncodpers")
_DEMOGRAPHICS_TEXT = (
    "ind_empleado pais_residencia sexo age fecha_alta ind_nuevo antiguedad indrel "
    "ult_fec_cli_1t indrel_1mes tiprel_1mes indresi indext conyuemp canal_entrada indfall "
    "tipodom cod_prov nomprov ind_actividad_cliente renta segmento"
)
DEMOGRAPHICS = tuple(_DEMOGRAPHICS_TEXT.split(" "))
COLUMNS = (*KEYS, *DEMOGRAPHICS, *PRODUCTS)

Features = Literal["own", "paper"]
# The paper's columns: categories one-hot, then numbers, then the current holdings.
_CATEGORICAL_TEXT = (
    "ind_empleado sexo ind_nuevo indresi indext canal_entrada segmento nomprov pais_residencia "
    "tiprel_1mes tipodom"
)
CATEGORICAL = tuple(_CATEGORICAL_TEXT.split(" "))
MAX_CATEGORIES = 50
MISSING = "missing"  # a category of its own
STANDARDISED = ("age", "seniority", "active", "income", "province")


class Flag(NamedTuple):
    """A feature that is 1 where a column has one of some values."""

    name: str
    column: str
    values: tuple[str, ...]


# The first three letters of a segment ("02 - PARTICULARES") are compared, and "1.0" is "1".
FLAGS = (
    Flag("new_customer", "ind_nuevo", ("1",)),
    Flag("primary_customer", "indrel", ("1",)),
    Flag("sex_h", "sexo", ("H",)),
    Flag("sex_v", "sexo", ("V",)),
    Flag("employee", "ind_empleado", ("A", "B", "F", "P", "S")),
    Flag("spouse_of_employee", "conyuemp", ("S",)),
    Flag("lives_in_spain", "pais_residencia", ("ES",)),
    Flag("foreigner", "indext", ("S",)),
    Flag("deceased", "indfall", ("S",)),
    Flag("active", "ind_actividad_cliente", ("1",)),
    Flag("status_primary", "indrel_1mes", ("1",)),
    Flag("status_former_primary", "indrel_1mes", ("3",)),
    Flag("status_potential", "indrel_1mes", ("P",)),
    Flag("relation_active", "tiprel_1mes", ("A",)),
    Flag("relation_inactive", "tiprel_1mes", ("I",)),
    Flag("segment_top", "segmento", ("01",)),
    Flag("segment_private", "segmento", ("02",)),
    Flag("segment_student", "segmento", ("03",)),
    *(
        Flag(f"channel_{code.lower()}", "canal_entrada", (code,))
        for code in ("KHE", "KAT", "KFC", "KHQ", "KFA")
    ),
)
HISTORY_NAMES = (
    "n_held",
    "rows_so_far",
    "months_since_row_before",
    "month",
    "month_of_year",
)
_NUMBER_NAMES_TEXT = (
    "age age_missing seniority seniority_missing log_income income_missing province "
    "province_missing channel_place country_place"
)
NUMBER_NAMES = tuple(_NUMBER_NAMES_TEXT.split(" "))


def name_features(demographics: bool) -> tuple[str, ...]:
    """Names of the features, in the order of the columns."""
    products = [product.removeprefix("ind_").removesuffix("_ult1") for product in PRODUCTS]
    names = [
        *(f"holds_{product}" for product in products),
        *(f"held_before_{product}" for product in products),
        *(f"months_held_{product}" for product in products),
        *HISTORY_NAMES,
    ]
    if demographics:
        names += [*NUMBER_NAMES, *(flag.name for flag in FLAGS)]
    return tuple(names)
