"""Which sizes and numbers become symbols. FACTS-like tables of torch's behaviour are in parity/."""

from __future__ import annotations

import dynacheck
import pytest
import torch
from dynacheck import configured
from dynacheck.runtime.history import CHANGED, History, Seen, relative_strides


def sizes(compiled, *shapes):
    for shape in shapes:
        compiled(torch.ones(*shape))


def test_history_of_a_value():
    history = History()
    seen = history.note("place", "L['x']", Seen(None, (4, 3), relative_strides((4, 3), (3, 1))))
    assert not seen.size_changed(0)
    seen = history.note("place", "L['x']", Seen(None, (5, 3), relative_strides((5, 3), (3, 1))))
    assert seen.size_changed(0) and not seen.size_changed(1) and not seen.stride_changed(0)
    seen = history.note("place", "L['x']", Seen(None, (5, 3, 1), (3, 1, 1)))
    assert seen.sizes is CHANGED and seen.size_changed(0) and seen.size_changed(2)
    assert not history.note("elsewhere", "L['x']", Seen(None, (6, 3), (3, 1))).size_changed(0)
    assert not history.note("place", "L['n']", Seen(1)).number_changed
    assert not history.note("place", "L['n']", Seen(1.0)).number_changed
    assert history.note("place", "L['n']", Seen(2)).number_changed
    history.clear()
    assert not history.note("place", "L['n']", Seen(2)).number_changed


def test_strides_change_only_while_sizes_do_not():
    seen = Seen(None, (4, 4), relative_strides((4, 4), (4, 1)))
    seen.add(Seen(None, (4, 4), relative_strides((4, 4), (1, 4))))
    assert seen.stride_changed(0) and seen.stride_changed(1)
    seen.add(Seen(None, (5, 4), relative_strides((5, 4), (4, 1))))
    assert not seen.stride_changed(0)


@pytest.mark.parametrize(("dynamic", "graphs"), [(None, 2), (True, 1), (False, 4)])
def test_dynamic(backend, dynamic, graphs):
    compiled = dynacheck.compile(lambda x: x * 2, backend=backend, dynamic=dynamic)
    sizes(compiled, (3,), (4,), (5,), (6,))
    assert len(backend) == graphs


def test_settings(backend):
    compiled = dynacheck.compile(lambda x: x * 2, backend=backend)
    with configured(automatic_dynamic_shapes=False):
        sizes(compiled, (3,), (4,), (5,))
    assert len(backend) == 3
    dynacheck.reset()
    with configured(assume_static_by_default=False):
        sizes(compiled, (3,), (4,), (5,))
    assert len(backend) == 4


def test_settings_that_change_translation_have_entries_of_their_own(seen, x):
    def f(x, n):
        return x * n

    compiled = dynacheck.compile(f, backend="eager")
    compiled(x, 2.0)
    for _ in range(2):
        with configured(specialize_float=True):
            for n in (2.0, 3.0, 4.0):
                compiled(x, n)
    for n in (2.0, 3.0, 4.0):
        compiled(x, n)
    outcomes = [c.outcome for c in seen.calls]
    assert outcomes == ["miss"] * 4 + ["hit"] * 4 + ["miss", "hit"]


def test_marks(backend):
    compiled = dynacheck.compile(lambda x: x * 2, backend=backend)
    for size in (3, 4, 5):
        x = torch.ones(size, 2)
        dynacheck.mark_dynamic(x, 0)
        compiled(x)
    assert len(backend) == 1
    dynacheck.reset()
    for size in (3, 4, 5):
        x = torch.ones(size, 2)
        dynacheck.maybe_mark_dynamic(x, 0)
        compiled(x)
    assert len(backend) == 2
    dynacheck.reset()
    for size in (3, 4, 5):
        x = torch.ones(size, 2)
        dynacheck.mark_static(x)
        compiled(x)
    assert len(backend) == 5


@pytest.mark.parametrize(("mark", "options"), [("mark_dynamic", {}), ("mark_unbacked", {"strict": True})])
def test_a_mark_that_cannot_be_kept(mark, options):
    def f(x):
        return x * 2 if x.shape[0] == 4 else x

    x = torch.ones(4, 2)
    getattr(dynacheck, mark)(x, 0, **options)
    with pytest.raises(dynacheck.ConstraintViolationError, match=mark):
        dynacheck.compile(f, backend="eager")(x)


def test_torchs_own_marks(backend):
    import torch._dynamo

    compiled = dynacheck.compile(lambda x: x * 2, backend=backend)
    for size in (3, 4, 5):
        x = torch.ones(size, 2)
        torch._dynamo.mark_dynamic(x, 0)
        compiled(x)
    assert len(backend) == 1


def test_bad_marks():
    with pytest.raises(IndexError, match="mark_dynamic: dimension 2 of a tensor with 1 dimensions"):
        dynacheck.mark_dynamic(torch.ones(3), 2)
    with pytest.raises(IndexError):
        dynacheck.mark_static(torch.ones(3), [0, 1])


def test_a_symbol_of_an_int_is_of_ints_only(backend, x):
    compiled = dynacheck.compile(lambda x, n: x * n, backend=backend)
    for n in (2, 3, 4, 5.0, 6.0, 7.0, True):
        torch.testing.assert_close(compiled(x, n), x * n)
    assert len(backend) == 5 - 1


class Owner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = torch.ones(3)
        self.register_buffer("buffer", torch.ones(3))
        self.inner = torch.nn.Identity()
        self.inner.attached = torch.ones(3)
        self.config = type("Config", (), {})()
        self.config.n = 3

    def forward(self, x, which):
        if which == "config":
            return x * self.config.n
        if which == "attached":
            return x + self.inner.attached.sum()
        return x + getattr(self, which).sum()


@pytest.mark.parametrize(("which", "graphs"), [("plain", 2), ("buffer", 5), ("attached", 5), ("config", 5)])
def test_what_modules_own(backend, which, graphs, x):
    """As torch.compile has it (measured on 2.13)."""
    net = Owner()
    compiled = dynacheck.compile(net, backend=backend)
    for i in range(5):
        if which == "config":
            net.config.n = 3 + i
        elif which == "attached":
            net.inner.attached = torch.ones(3 + i)
        else:
            setattr(net, which, torch.ones(3 + i))
        torch.testing.assert_close(compiled(x, which), net(x, which))
    assert len(backend) == graphs


scale = 0.5
table = {"by": 0.5}


def test_global_floats_and_tensors(backend, x):
    def f(x):
        return x * scale + table["by"]

    global scale
    compiled = dynacheck.compile(f, backend=backend)
    for i in range(5):
        scale = 1.5 + i
        table["by"] = 2.5 * i
        torch.testing.assert_close(compiled(x), f(x))
    assert len(backend) == 2


def by_default(x, k=3):
    return x * k


@torch.inference_mode()
def test_a_float_varies_in_inference_mode(backend):
    compiled = dynacheck.compile(lambda x, r: x * r, backend=backend)
    for r in (2.5, 0.5, 1.5):
        assert compiled(torch.ones(2), r).tolist() == [r, r]
    assert len(backend) == 2


def test_defaults_stay_static(backend, x, monkeypatch):
    compiled = dynacheck.compile(lambda x: by_default(x), backend=backend)
    for i in range(4):
        monkeypatch.setattr(by_default, "__defaults__", (3 + i,))
        torch.testing.assert_close(compiled(x), x * (3 + i))
    assert len(backend) == 4
