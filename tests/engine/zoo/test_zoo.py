"""Real models under the bundled engine: results and gradients as in eager, figures as under torch.compile.

With `--dynacheck-device=cuda` on a GPU, which are skipped where there is none.
"""

import pytest
import zoo_model
from expected_differences import EXPECTED_FAILURES, ON_PURPOSE, OTHER_OPERATORS
from parity.engines import ENGINES
from zoo import all_models, disagreements

MODELS = {model.name: model for model in all_models()}
BACKWARD = ("transformer_encoder", "unet", "bert", "llama")


def cases():
    for model in MODELS.values():
        marks = [] if model.ci else [pytest.mark.slow]
        if not model.is_here():
            marks.append(pytest.mark.skip(reason=f"{model.needs} isn't installed"))
        for training in (False, True) if model.training else (False,):
            reason = EXPECTED_FAILURES.get((model.name, training))
            failing = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
            mode = "train" if training else "eval"
            yield pytest.param(model.name, training, id=f"{model.name}-{mode}", marks=[*marks, *failing])


@pytest.mark.parametrize("name, training", list(cases()))
def test_agrees(name, training, dynacheck_device):
    model = MODELS[name]
    eager = zoo_model.run(model, training=training, device=dynacheck_device)
    theirs = zoo_model.run(model, ENGINES["torch"], training=training, device=dynacheck_device)
    ours = zoo_model.run(model, ENGINES["bundled"], training=training, device=dynacheck_device)
    assert not disagreements(model, eager, theirs, ours, training)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKWARD)
def test_backward_of_lowered_graphs(name, dynacheck_device):
    """Forward and backward through AOTAutograd."""
    model = MODELS[name]
    if not model.is_here():
        pytest.skip(f"{model.needs} isn't installed")
    eager = zoo_model.run(model, training=True, device=dynacheck_device)
    theirs = zoo_model.run(
        model, ENGINES["torch"], training=True, backend="aot_eager", device=dynacheck_device
    )
    ours = zoo_model.run(
        model, ENGINES["bundled"], training=True, backend="aot_eager", device=dynacheck_device
    )
    assert not disagreements(model, eager, theirs, ours)


def test_names_are_unique_and_tables_in_step():
    names = [model.name for model in all_models()]
    assert len(names) == len(set(names))
    assert {name for name, _ in (*EXPECTED_FAILURES, *ON_PURPOSE)} <= set(names)
    assert set(OTHER_OPERATORS) <= set(names)
    assert 8 <= sum(model.ci for model in all_models()) <= 12
