"""All models of the zoo, and why an engine's run of one doesn't agree with the others."""

from __future__ import annotations

import models_classics
import models_hugging_face
import models_libraries
import models_written
from expected_differences import ON_PURPOSE, OTHER_OPERATORS
from zoo_model import Model, Run, differences

__all__ = ["all_models", "disagreements"]


def all_models() -> list[Model]:
    """The whole table, groups together."""
    parts = models_classics, models_written, models_hugging_face, models_libraries
    return [model for part in parts for model in part.MODELS]


def disagreements(
    model: Model, eager: Run, theirs: Run | None, ours: Run, training: bool = False, on_purpose: bool = True
) -> list[str]:
    """Where the bundled engine differs from eager (values) or from torch (figures); empty when all is as it should be.

    Figures that differ on purpose have to, unless `on_purpose` is off: then they are told like the others.
    """
    found = [*ours.figures.faults, *differences(eager, ours, model.tolerance)]
    if theirs is not None:
        wanted, have = theirs.figures.compared(), ours.figures.compared()
        known = (
            ON_PURPOSE[model.name, training][1] if on_purpose and (model.name, training) in ON_PURPOSE else ()
        )
        found += [
            f"{key}: {have[key]!r} instead of {wanted[key]!r}"
            for key in wanted
            if wanted[key] != have[key] and key not in known
        ]
        found += [f"{key}: no longer differs" for key in known if wanted[key] == have[key]]
        # only of the first graph: later ones have sizes as nodes
        if not found and model.name not in OTHER_OPERATORS and theirs.operators[:1] != ours.operators[:1]:
            found.append(f"operators: {ours.operators} instead of {theirs.operators}")
    return found
