"""Metadata propagation: time of a lookup, and of a model's calls by memo against fake tensors.

Run: python tests/benchmarks/bench_oracle.py
"""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from dynacheck.graph.facts import TensorRef, facts_of
from dynacheck.graph.oracle import Oracle
from dynacheck.graph.recorder import GraphRecorder
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode


def best(fn: Callable[[], Any], number: int, repeat: int = 7) -> float:
    """Seconds per call, best of several."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            fn()
        times.append((time.perf_counter() - start) / number)
    return min(times)


def lookups() -> None:
    oracle = Oracle()
    x = TensorRef(facts_of(torch.ones(2, 8, 16)))
    w = TensorRef(facts_of(torch.nn.Parameter(torch.ones(16, 16))))
    b = TensorRef(facts_of(torch.nn.Parameter(torch.ones(16))))
    recorder = GraphRecorder()
    node = recorder.graph.placeholder("x")
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("x.relu()", lambda: oracle.call("call_method", "relu", (x,))),
        ("x + 1", lambda: oracle.call("call_function", operator.add, (x, 1))),
        ("x + x", lambda: oracle.call("call_function", operator.add, (x, x))),
        ("linear(x, w, b)", lambda: oracle.call("call_function", torch._C._nn.linear, (x, w, b))),
        ("x.view(16, 16)", lambda: oracle.call("call_method", "view", (x, 16, 16))),
        (
            "layer_norm(x, ...)",
            lambda: oracle.call("call_function", torch.nn.functional.layer_norm, (x, (16,), b, b, 1e-5)),
        ),
        ("cat([x, x], dim=1)", lambda: oracle.call("call_function", torch.cat, ([x, x],), {"dim": 1})),
        ("x.chunk(2, -1)", lambda: oracle.call("call_method", "chunk", (x, 2, -1))),
        ("x.shape", lambda: oracle.attribute(x, "shape")),
        ("x.T", lambda: oracle.attribute(w, "T")),
        ("facts_of(parameter)", lambda p=torch.nn.Parameter(torch.ones(3)): facts_of(p)),
        ("record a call", lambda: recorder.call("call_function", operator.add, (node, 1))),
    ]
    print(f"{'lookup':24}{'ns':>10}")
    for name, fn in cases:
        # views stay members of their storage for an attempt: start each round anew
        def round_(fn: Callable[[], Any] = fn) -> Any:
            return fn()

        round_()
        seconds = best(round_, 2000)
        for ref in (x, w, b):
            del ref.storage.members[1:]
        print(f"{name:24}{seconds * 1e9:10.0f}")


class Calls(TorchFunctionMode):
    """Notes a model's torch calls, with refs in place of tensors."""

    def __init__(self) -> None:
        self.refs: dict[int, TensorRef] = {}
        self.keep: list[Any] = []
        self.calls: list[tuple[Any, Any, Any]] = []

    def ref(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self.refs:
                with torch._C.DisableTorchFunction():
                    self.refs[id(value)] = TensorRef(facts_of(value))
                self.keep.append(value)
            return self.refs[id(value)]
        if type(value) in (tuple, list):
            return type(value)(self.ref(v) for v in value)
        return value

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if not name.startswith(("__bool__", "set_grad", "_set_grad", "__set__")):
            self.calls.append((func, self.ref(args), {k: self.ref(v) for k, v in kwargs.items()}))
        return func(*args, **kwargs)


def models() -> None:
    import transformers as t

    small: dict[str, Any] = dict(
        hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128
    )
    ids = {"input_ids": torch.arange(16).view(2, 8)}
    cases: list[tuple[str, Any, dict[str, Any]]] = [
        ("BERT", t.BertModel(t.BertConfig(**small, vocab_size=100)), ids),
        (
            "GPT-2",
            t.GPT2Model(t.GPT2Config(n_embd=64, n_layer=4, n_head=4, vocab_size=100, use_cache=False)),
            ids,
        ),
        ("Llama", t.LlamaModel(t.LlamaConfig(**small, vocab_size=100, use_cache=False)), ids),
        (
            "ViT",
            t.ViTModel(t.ViTConfig(**small, image_size=32, patch_size=8)),
            {"pixel_values": torch.ones(2, 3, 32, 32)},
        ),
    ]
    oracle = Oracle()
    print(f"\n{'model':10}{'calls':>8}{'misses':>8}{'first ms':>10}{'memo ms':>10}{'fake ms':>10}")
    for name, model, inputs in cases:
        model.eval()
        watch = Calls()
        with watch:
            model(**inputs)

        def propagate(calls: list[tuple[Any, Any, Any]] = watch.calls) -> None:
            for func, args, kwargs in calls:
                try:
                    oracle.call("call_function", func, args, kwargs)
                except Exception:
                    pass

        def fake(model: Any = model, inputs: dict[str, Any] = inputs) -> None:
            mode = FakeTensorMode(allow_non_fake_inputs=True)
            with mode:
                state = {
                    k: mode.from_tensor(v) for k, v in (*model.named_parameters(), *model.named_buffers())
                }
                args = {k: mode.from_tensor(v) for k, v in inputs.items()}
                try:
                    torch.func.functional_call(model, state, (), args)
                except Exception as error:
                    print(f"  ({name} under fake tensors: {type(error).__name__})", file=sys.stderr)

        before = oracle.misses
        start = time.perf_counter()
        propagate()
        first = time.perf_counter() - start
        misses = oracle.misses - before
        fake()
        print(
            f"{name:10}{len(watch.calls):8}{misses:8}{first * 1e3:10.1f}{best(propagate, 1) * 1e3:10.2f}"
            f"{best(fake, 1, 3) * 1e3:10.1f}"
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    lookups()
    models()
