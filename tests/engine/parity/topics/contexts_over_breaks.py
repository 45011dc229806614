"""Context managers with breaks in them: torch's own, generic ones, nested, suppressing, of the program's classes."""

import contextlib

SEEN = []


class Scope:
    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        SEEN.append("in " + self.name)
        return self

    def __exit__(self, kind, error, trace):
        SEEN.append(f"out {self.name} {kind and kind.__name__}")
        return self.swallow


@contextlib.contextmanager
def written(name):
    SEEN.append("in " + name)
    try:
        yield name
    finally:
        SEEN.append("out " + name)


@program
def no_grad(x):
    with torch.no_grad():
        y = BREAK(x + 1)
        z = BREAK(y * 2)
    return BREAK(z), torch.is_grad_enabled()


@program
def no_grad_nested(x):
    with torch.no_grad():
        with torch.enable_grad():
            y = BREAK(x + 1)
        inner = torch.is_grad_enabled()
        y = BREAK(y)
    return y, inner, BREAK(torch.is_grad_enabled())


@program
def two_in_one_line(x):
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        y = BREAK(x + 1)
    return BREAK(y)


@program
def grad_mode_of_a_number(x):
    with torch.set_grad_enabled(BREAK(False)):
        y = x * 2
        BREAK()
    return y, torch.is_grad_enabled()


@program
def returned_from(x):
    with torch.no_grad():
        y = x + 1
        return BREAK(y * 2)


@program
def raised_in(x):
    with torch.no_grad():
        y = BREAK(x + 1)
        raise ValueError(y.dim())


@program
def decorated(x):
    @torch.no_grad()
    def callee(v):
        return BREAK(v * 2), torch.is_grad_enabled()

    y, inside = callee(x)
    return y, inside, BREAK(torch.is_grad_enabled())


@program
def in_a_callee(x):
    def callee(v):
        with torch.no_grad():
            w = BREAK(v * 2)
        return w

    return callee(callee(x)) + BREAK(1)


@program
def null(x):
    with contextlib.nullcontext(x) as y:
        y = BREAK(y + 1)
    return BREAK(y)


@program
def suppressing(x):
    y = x
    with contextlib.suppress(ValueError):
        y = BREAK(y + 1)
        raise ValueError("suppressed")
    return BREAK(y)


@program
def of_a_class(x):
    with Scope("a") as scope:
        y = BREAK(x + len(scope.name))
    return BREAK(y), list(SEEN)


@program
def made_before(x):
    scope = Scope("b")
    y = BREAK(x)
    with scope:
        y = y + 1
    return BREAK(y), len(SEEN)


@program
def swallowing(x):
    y = x
    with Scope("c", swallow=True):
        y = y + 1
        raise KeyError("c")
    return BREAK(y)


@program
def swallowing_after_a_break(x):
    y = x
    with Scope("d", swallow=True):
        y = BREAK(y + 1)
        raise KeyError("d")
    return BREAK(y)


@program
def nested_classes(x):
    with Scope("e") as one, Scope("f") as two:
        y = x + len(one.name + two.name)
        BREAK()
    return BREAK(y)


@program
def of_a_function(x):
    with written("g") as name:
        y = BREAK(x + len(name))
    return BREAK(y)


@program
def of_a_function_raising(x):
    y = BREAK(x)
    with written("h"):
        raise ValueError(y.dim())


@program
def mixed(x):
    with Scope("i"):
        with torch.no_grad():
            y = x * 2
    y = BREAK(y)
    with torch.no_grad():
        y = BREAK(y + 1)
    return y, len(SEEN)


@program
def stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y = BREAK(x + 1)
    return y, BREAK(torch.is_grad_enabled())


@program
def closing(x):
    class Owner:
        closed = 0

        def close(self):
            self.closed += 1

    owner = Owner()
    with contextlib.closing(owner):
        y = BREAK(x + 1)
    return y, BREAK(owner.closed)
