"""Programs that hand on a value, or ask what it is, without using it, for many kinds of values (row 37).

What torch guards of such a value follows from how it leaves the frame; ``FIGURES`` has what was measured.
"""

import io

import torch
from parity.harness import registry

PROGRAMS, program = registry()
OUT = io.StringIO()


@program("number_kept_under_another_name", 37, graphs=2, breaks=2, recompiles=1)
def _():
    def f(x, v):
        kept = v
        y = x + 1
        print(end="", file=OUT)
        return y, kept

    return f, [(torch.ones(2), v) for v in (1.5, 2.5, 3.5)]


@program("number_of_a_break_kept", 37, graphs=2, breaks=3, recompiles=1)
def _():
    clock = [0.5]

    @torch.compiler.disable
    def now():
        clock[0] += 1.5
        return clock[0]

    def f(x):
        start = now()
        y = x + 1
        took = now() - start
        return y, took

    return f, [(torch.ones(2),) for _ in range(3)]


class Holder:
    def __init__(self, value=None):
        self.value = value


def returned_behind(x, v):
    return x + 1, v


def returned_before(x, v):
    return v, x + 1


def returned_in_a_list(x, v):
    return x + 1, [v]


def returned_in_a_dict(x, v):
    return {"y": x + 1, "more": {"v": v}}


def returned_behind_in_a_dict(x, v):
    return {"y": x + 1, "more": {"y": x, "v": v}}


def returned_by_a_callee(x, v):
    return returned_behind(x, v)


def dropped(x, v):
    items = [v]
    return x + 1


def in_a_closure(x, v):
    def read():
        return v

    return x + 1, read()


def in_an_attribute(x, v):
    HOLDER.value = v
    return x + 1


def in_a_new_object(x, v):
    holder = Holder()
    holder.value = v
    return x + 1, holder


def in_a_list_that_was_there(x, v):
    KEPT[:] = [v]
    return x + 1


def in_a_dict_that_was_there(x, v):
    TABLE["v"] = v
    return x + 1


def in_a_global(x, v):
    global GLOBAL
    GLOBAL = v
    return x + 1


def beside_what_is_written(x, v):
    batch = v if isinstance(v, dict) else HOLDERS
    batch["y"] = x + 1
    return batch["y"]


def across_a_break(x, v):
    y = x + 1
    print(end="", file=OUT)
    return y * 2, v


def in_a_list_across_a_break(x, v):
    y = x + 1
    items = [v]
    print(end="", file=OUT)
    return y * 2, items


def argument_of_a_break(x, v):
    y = x + 1
    print(v, end="", file=OUT)
    return y * 2


def asked_for_its_type(x, v):
    return x * 2 if isinstance(v, list) else x + 1


def compared_with_none(x, v):
    return x * 2 if v is None else x + 1


HOLDER, KEPT, TABLE, HOLDERS = Holder(), [], {}, {}
GLOBAL = None

VALUES = {
    "texts": lambda: ["a", "b", "c"],
    "ints": lambda: [2, 3, 4],
    "tensors": lambda: [torch.ones(2), torch.ones(3), torch.ones(2, dtype=torch.float64)],
    "optional": lambda: [None, torch.ones(2), None],
    "lists": lambda: [["a"], ["b"], ["b", "c"]],
    "dicts": lambda: [{"id": "a", "t": torch.ones(2)}, {"id": "b", "t": torch.ones(2)}, {"id": "c", "t": torch.ones(3)}],
    "objects": lambda: [Holder(1), Holder(2), 3],
}  # fmt: skip

# way -> (graphs, breaks, recompiles) by kind, in the order of VALUES
FIGURES = {
    "returned_behind": [(1, 0, 0), (1, 0, 0), (3, 0, 2), (2, 0, 1), (2, 0, 1), (2, 0, 1), (2, 0, 1)],
    "returned_before": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (2, 0, 1), (3, 0, 2), (3, 0, 2), (2, 0, 1)],
    "returned_in_a_list": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (2, 0, 1), (3, 0, 2), (3, 0, 2), (2, 0, 1)],
    "returned_in_a_dict": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (2, 0, 1), (3, 0, 2), (3, 0, 2), (2, 0, 1)],
    "returned_behind_in_a_dict": [(1, 0, 0), (1, 0, 0), (3, 0, 2), (2, 0, 1), (2, 0, 1), (2, 0, 1), (2, 0, 1)],
    "returned_by_a_callee": [(1, 0, 0), (1, 0, 0), (3, 0, 2), (2, 0, 1), (2, 0, 1), (2, 0, 1), (2, 0, 1)],
    "dropped": [(1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0)],
    "in_a_closure": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (2, 0, 1), (3, 0, 2), (3, 0, 2), (2, 0, 1)],
    "in_an_attribute": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (2, 0, 1), (2, 0, 1), (1, 0, 0), (2, 0, 1)],
    "in_a_new_object": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (2, 0, 1), (2, 0, 1), (1, 0, 0), (2, 0, 1)],
    "in_a_list_that_was_there": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (3, 0, 2), (3, 0, 2), (3, 0, 2), (3, 0, 2)],
    "in_a_dict_that_was_there": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (3, 0, 2), (3, 0, 2), (3, 0, 2), (3, 0, 2)],
    "in_a_global": [(1, 0, 0), (1, 0, 0), (3, 0, 2), (2, 0, 1), (2, 0, 1), (1, 0, 0), (2, 0, 1)],
    "beside_what_is_written": [(2, 0, 1), (2, 0, 1), (3, 0, 2), (3, 0, 2), (3, 0, 2), (3, 0, 2), (3, 0, 2)],
    "across_a_break": [(2, 1, 0), (2, 1, 0), (4, 1, 2), (3, 1, 1), (3, 1, 1), (3, 1, 1), (3, 1, 1)],
    "in_a_list_across_a_break": [(4, 3, 2), (3, 2, 1), (6, 3, 4), (4, 2, 2), (5, 3, 3), (5, 3, 3), (4, 2, 2)],
    "argument_of_a_break": [(2, 1, 0), (3, 2, 1), (4, 3, 2), (3, 2, 1), (3, 2, 1), (3, 2, 1), (3, 2, 1)],
    "asked_for_its_type": [(1, 0, 0), (2, 0, 1), (3, 0, 2), (2, 0, 1), (2, 0, 1), (1, 0, 0), (2, 0, 1)],
    "compared_with_none": [(3, 0, 2), (2, 0, 1), (3, 0, 2), (2, 0, 1), (2, 0, 1), (1, 0, 0), (2, 0, 1)],
}  # fmt: skip


def handed_on(way, kind):
    figures = FIGURES[way.__name__][list(VALUES).index(kind)]
    graphs, breaks, recompiles = figures

    @program(f"{way.__name__}_{kind}", 37, graphs=graphs, breaks=breaks, recompiles=recompiles)
    def _():
        return way, [(torch.ones(3), value) for value in VALUES[kind]()]


for way in (
    returned_behind, returned_before, returned_in_a_list, returned_in_a_dict, returned_behind_in_a_dict,
    returned_by_a_callee, dropped, in_a_closure, in_an_attribute, in_a_new_object, in_a_list_that_was_there,
    in_a_dict_that_was_there, in_a_global, beside_what_is_written, across_a_break, in_a_list_across_a_break,
    argument_of_a_break, asked_for_its_type, compared_with_none,
):  # fmt: skip
    for kind in VALUES:
        handed_on(way, kind)


def with_a_break(x):
    yield x.sin()
    print("break")
    yield x.cos()


def sum_of_a_generator(x):
    found = x
    for part in with_a_break(x):
        found = found + part
    return found


@program("generator_with_a_break_iterated_by_a_callee", 41, graphs=2, breaks=2)
def _():
    return lambda x: sum_of_a_generator(x + 1) * 2, [(torch.ones(3),), (torch.ones(3),)]
