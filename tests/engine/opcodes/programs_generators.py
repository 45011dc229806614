"""Generators."""

# ruff: noqa: F811, F821, E711, E712, E741, F541, F601, F632, F633, F842, UP028
# mypy: ignore-errors

from __future__ import annotations

from opcode_programs import program

# -- generators


@program
def generator_basics():
    def gen(n):
        for i in range(n):
            yield i
        return "end"

    def outer():
        r = yield from gen(2)
        yield r
        yield from [7, 8]

    return list(gen(3)), list(outer()), sum(x * x for x in range(4)), [*gen(2)], tuple(gen(1))


@program
def generator_protocol():
    log = []

    def gen():
        try:
            x = yield 1
            log.append(x)
            y = yield x + 1
            log.append(y)
        except ValueError as e:
            log.append(str(e))
            yield "handled"
        finally:
            log.append("finally")

    g = gen()
    out = [next(g), g.send(10), g.throw(ValueError("boom"))]
    g.close()
    h = gen()
    out.append(next(h))
    h.close()
    return out, log, next(g, "done")


@program
def generator_return_value():
    def gen():
        yield 1
        return 5

    g = gen()
    next(g)
    try:
        next(g)
    except StopIteration as e:
        return e.value, e.args


@program
def generator_exhausted():
    def gen():
        yield 1

    g = gen()
    next(g)
    try:
        next(g)
    except StopIteration as e:
        first = e.value
    next(g)
    return first


@program
def generator_send_early():
    def gen():
        yield 1

    gen().send(5)


@program
def generator_raises_stop():
    def gen():
        yield 1
        raise StopIteration("x")

    list(gen())


@program
def generator_stop_cause():
    def gen():
        raise StopIteration("x")
        yield

    try:
        list(gen())
    except RuntimeError as e:
        return str(e), type(e.__cause__).__name__, e.__cause__ is e.__context__


@program
def generator_ignores_close():
    def gen():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    g = gen()
    next(g)
    g.close()


@program
def generator_throw_uncaught():
    def gen():
        yield 1

    g = gen()
    next(g)
    try:
        g.throw(KeyError("k"))
    except KeyError as e:
        return e.args, list(g)


@program
def generator_throw_delegates():
    log = []

    def inner():
        try:
            yield 1
        except ValueError as e:
            log.append(str(e))
            yield 2
        return 3

    def outer():
        r = yield from inner()
        log.append(r)
        yield 4

    g = outer()
    return next(g), g.throw(ValueError("v")), next(g), log


@program
def generator_throw_ends_delegate():
    def inner():
        try:
            yield 1
        except ValueError:
            return "ended"

    def outer():
        r = yield from inner()
        yield r

    g = outer()
    return next(g), g.throw(ValueError)


@program
def generator_close_delegates():
    log = []

    def inner():
        try:
            yield 1
        finally:
            log.append("inner closed")

    def outer():
        try:
            yield from inner()
        finally:
            log.append("outer closed")

    g = outer()
    next(g)
    g.close()
    return log


@program
def generator_send_delegates():
    def inner():
        x = yield "a"
        y = yield x
        return (x, y)

    def outer():
        z = yield from inner()
        yield z

    g = outer()
    return next(g), g.send(1), g.send(2)


@program
def generator_executing():
    def gen():
        yield next(g)

    g = gen()
    next(g)


@program
def generator_handles_while_suspended():
    def gen():
        try:
            raise ValueError("in generator")
        except ValueError:
            yield 1
            try:
                raise KeyError
            except KeyError as k:
                yield type(k.__context__).__name__

    g = gen()
    first = next(g)
    try:
        raise IndexError
    except IndexError as i:
        outside = i.__context__
    return first, outside, next(g)


@program
def generator_expression_scope():
    n = 2
    g = (i + n for i in range(3))
    n = 10
    return list(g)


@program
def yield_as_expression():
    def gen():
        x = (yield), (yield 5)
        yield x

    g = gen()
    return next(g), g.send("a"), g.send("b")


@program
def lazy_interleaving():
    log = []

    def gen(n):
        for i in range(n):
            log.append(("make", i))
            yield i

    for i in gen(2):
        log.append(("use", i))
    return log
