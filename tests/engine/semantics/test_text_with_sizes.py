"""Text with a symbolic size in it, weak references that die, kernel choices and hooks: what plain Python does."""

import gc
import weakref

import dynacheck
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def unused(x):
    f"{x.shape[0]}"  # noqa: B018
    return x + 1


def returned(x):
    return x + 1, f"{x.shape[0]}", str(x.shape[0]), repr(x.shape[0])


def as_a_key(x):
    return {f"{x.shape[0]}": x + 1}


def compared(x):
    return x + 1 if f"{x.shape[0]}" == "4" else x - 1


def joined(x):
    return x + 1, "-".join([f"{x.shape[0]}", "a"]), f"{x.shape[0]:>5}|{x.shape[0] + 1}", len(f"{x.shape[0]}")


def badly_formatted(x):
    try:
        return x + 1, f"{x.shape[0]:q}"
    except ValueError as error:
        return x + 1, str(error)


def printed(x):
    print("{}".format(x.shape[0]))  # noqa: UP032
    return x + 1


@pytest.mark.parametrize("f", [unused, returned, as_a_key, compared, joined, badly_formatted, printed])
@pytest.mark.parametrize("dynamic", [None, True])
def test_text_of_a_size(f, dynamic, seen, capsys):
    compiled = dynacheck.compile(f, backend="eager", dynamic=dynamic)
    for size in (3, 4, 5, 10, 4):
        x = torch.ones(size)
        wanted, text = f(x), capsys.readouterr().out
        assert repr(compiled(x)) == repr(wanted)
        assert capsys.readouterr().out == text
    assert seen.graphs
    if f is unused:
        assert len(seen.graphs) <= 2


class Held:
    scale = 2.0


def test_a_weak_reference_that_dies(seen):
    held = [Held()]
    reference = weakref.ref(held[0])

    def f(x):
        found = reference()
        return x * found.scale if found is not None else -x

    compiled = dynacheck.compile(f, backend="eager")
    x = torch.ones(2)
    assert compiled(x).tolist() == [2, 2]
    held.clear()
    gc.collect()  # what a translation leaves are cycles
    assert compiled(x).tolist() == [-1, -1]
    assert len(seen.graphs) == 2 and not seen.graph_breaks


def test_kernels_chosen_when_the_graph_raises_are_left(engine):
    before = torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()

    def f(x, index):
        with sdpa_kernel(SDPBackend.MATH):
            return x[index] + 1

    compiled = engine.compile(f, backend="eager")
    assert compiled(torch.ones(3), torch.tensor([0, 1])).tolist() == [2, 2]
    with pytest.raises(IndexError):
        compiled(torch.ones(3), torch.tensor([0, 7]))
    assert (torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()) == before


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_of_an_input_run_in_order_and_once(backend, seen):
    calls = []

    def f(x):
        x.register_hook(lambda grad: calls.append("first") or grad * 3)
        kept = x.register_hook(lambda grad: calls.append("second") or grad + 1)
        x.register_hook(lambda grad: calls.append("removed")).remove()
        return (x * 2).sum(), kept

    x = torch.ones(2, requires_grad=True)
    result, kept = dynacheck.compile(f, backend=backend)(x)
    result.backward(retain_graph=True)
    assert calls == ["first", "second"] and x.grad.tolist() == [7, 7]
    kept.remove()
    result.backward()
    assert calls == ["first", "second", "first"]
    assert seen.graphs and not seen.graph_breaks
