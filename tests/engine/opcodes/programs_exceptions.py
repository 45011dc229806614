"""Raising, catching, groups, `with`."""

# ruff: noqa: F811, F821, E711, E712, E741, F541, F601, F632, F633, F842, UP028
# mypy: ignore-errors

from __future__ import annotations

from opcode_programs import program

# -- exceptions


@program
def caught():
    try:
        raise ValueError("a", 2)
    except ValueError as e:
        return e.args, str(e), repr(e), type(e).__name__, isinstance(e, Exception)


@program
def caught_class():
    try:
        raise KeyError
    except (TypeError, LookupError) as e:
        return str(e), e.args
    finally:
        pass


@program
def name_is_deleted():
    try:
        raise ValueError
    except ValueError as e:
        pass
    return e


@program
def else_and_finally():
    log = []

    def f(fail):
        try:
            log.append("try")
            if fail:
                raise KeyError("k")
        except KeyError as e:
            log.append(str(e))
        else:
            log.append("else")
        finally:
            log.append("finally")
        return len(log)

    return f(False), f(True), log


@program
def finally_returns():
    def f():
        try:
            raise ValueError
        finally:
            return 5

    def g():
        for i in range(3):
            try:
                continue
            finally:
                if i == 1:
                    break
        return i

    return f(), g()


@program
def not_matching():
    try:
        try:
            {}["x"]
        except TypeError:
            return "wrong"
    except KeyError as e:
        return "outer", e.args


@program
def reraised():
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise
    except ValueError as e:
        return e.args, e.__context__, e.__cause__


@program
def bare_raise_in_callee():
    def again():
        raise

    try:
        try:
            raise ValueError(7)
        except ValueError:
            again()
    except ValueError as e:
        return e.args


@program
def chained():
    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise ValueError("v") from e
    except ValueError as e:
        return type(e.__cause__).__name__, type(e.__context__).__name__, e.__suppress_context__


@program
def context_only():
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            [][0]
    except IndexError as e:
        return str(e), type(e.__context__).__name__, e.__cause__, e.__suppress_context__


@program
def from_none():
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            raise ValueError("v") from None
    except ValueError as e:
        return e.__cause__, e.__suppress_context__, type(e.__context__).__name__


@program
def context_after_handling():
    try:
        raise ValueError
    except ValueError:
        pass
    try:
        raise KeyError
    except KeyError as e:
        return e.__context__


@program
def from_class():
    try:
        raise ValueError from KeyError
    except ValueError as e:
        return type(e.__cause__).__name__


@program
def raise_non_exception():
    raise 3


@program
def cause_non_exception():
    raise ValueError from 3


@program
def except_non_exception():
    try:
        1 / 0
    except 3:
        pass


@program
def except_tuple_non_exception():
    try:
        1 / 0
    except (ValueError, int):
        pass


@program
def except_matcher_unused():
    try:
        x = 1
    except 3:
        pass
    return x


class Custom(Exception):
    def __init__(self, a, b=2):
        super().__init__(a)
        self.b = b

    def total(self):
        return self.args[0] + self.b


class Shown(Custom):
    def __str__(self):
        return f"shown {self.b}"


@program
def custom_exception():
    try:
        raise Custom(1, b=5)
    except Custom as e:
        return e.args, e.b, e.total(), str(e), repr(e), isinstance(e, Custom)


@program
def custom_shown():
    try:
        raise Shown(1)
    except Custom as e:
        return str(e), f"{e}", e.args


@program
def exception_attributes():
    e = ValueError("x")
    e.extra = 5
    e.args = [1, 2]
    e.add_note("n1")
    e.add_note("n2")
    k = KeyError("k")
    s = StopIteration(4)
    x = SystemExit(3)
    o = OSError(2, "gone", "file")
    return (
        e.extra,
        e.args,
        e.__notes__,
        str(k),
        s.value,
        x.code,
        o.errno,
        o.strerror,
        o.filename,
        o.args,
        str(o),
    )


@program
def os_error_subclass():
    try:
        raise OSError(2, "gone")
    except FileNotFoundError as e:
        return type(e).__name__, str(e)


@program
def exception_texts():
    return (
        str(ValueError()),
        str(ValueError("a")),
        str(ValueError("a", 1)),
        str(KeyError("a")),
        str(KeyError("a", "b")),
        repr(ValueError()),
        repr(ValueError("a")),
        repr(ValueError("a", 1)),
        str(ImportError("m", name="n")),
        f"{RuntimeError('r')}",
        str(UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")),
    )


@program
def exception_keyword_error():
    return ValueError(x=1)


@program
def exception_attribute_error():
    e = ValueError()
    e.__cause__ = 3


@program
def identity_of_exception():
    e = ValueError()
    try:
        raise e
    except ValueError as f:
        return e is f


@program
def nested_handlers():
    log = []
    try:
        try:
            raise ValueError("a")
        except ValueError:
            try:
                raise KeyError("b")
            except KeyError as k:
                log.append(type(k.__context__).__name__)
            log.append("inner done")
            raise
    except ValueError as e:
        log.append(str(e))
        log.append(e.__context__)
    return log


@program
def assertion():
    x = 0
    assert x, f"x is {x}"


@program
def assertion_bare():
    x = 0
    assert x


@program
def assertion_holds():
    x = 1
    assert x, "never"
    return x


@program
def error_in_finally():
    try:
        try:
            raise ValueError("a")
        finally:
            raise KeyError("b")
    except KeyError as e:
        return type(e.__context__).__name__


@program
def return_in_except():
    def f():
        try:
            raise ValueError
        except ValueError:
            return "handled"

    try:
        raise KeyError
    except KeyError as e:
        r = f()
        try:
            raise IndexError
        except IndexError as i:
            return r, type(i.__context__).__name__, e.__context__


# -- except*


@program
def except_star():
    log = []
    try:
        raise ExceptionGroup(
            "g", [ValueError(1), KeyError("k"), ExceptionGroup("h", [ValueError(2), OSError(3)])]
        )
    except* ValueError as e:
        log.append((type(e).__name__, e.message, len(e.exceptions), str(e)))
    except* (KeyError, OSError) as e:
        log.append([type(x).__name__ for x in e.exceptions])
    return log


@program
def except_star_naked():
    try:
        raise ValueError("a")
    except* ValueError as e:
        found = type(e).__name__, e.message, [x.args for x in e.exceptions]
    return found


@program
def except_star_rest():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            pass
    except ExceptionGroup as e:
        return e.message, [type(x).__name__ for x in e.exceptions]


@program
def except_star_raises():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            raise TypeError("new")
    except ExceptionGroup as e:
        return e.message, [(type(x).__name__, str(x)) for x in e.exceptions]


@program
def except_star_reraises():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2), OSError(3)])
        except* ValueError:
            raise
        except* KeyError:
            pass
    except ExceptionGroup as e:
        return e.message, [type(x).__name__ for x in e.exceptions]


@program
def except_star_group_class():
    try:
        raise ValueError
    except* ExceptionGroup:
        pass


@program
def group_errors():
    out = []
    for args in (("m",), (1, [ValueError()]), ("m", 3), ("m", []), ("m", [3]), ("m", [KeyboardInterrupt()])):
        try:
            ExceptionGroup(*args)
        except (TypeError, ValueError) as e:
            out.append(str(e))
    return out, type(BaseExceptionGroup("m", [ValueError()])).__name__


# -- with


class Manager:
    def __init__(self, log, swallow=False, name="m"):
        self.log = log
        self.swallow = swallow
        self.name = name

    def __enter__(self):
        self.log.append(f"enter {self.name}")
        return self.name

    def __exit__(self, cls, value, traceback):
        self.log.append(
            (f"exit {self.name}", None if cls is None else cls.__name__, str(value), traceback is None)
        )
        return self.swallow


@program
def with_normal():
    log = []
    with Manager(log) as m, Manager(log, name="n"):
        log.append(m)
    return log


@program
def with_exception():
    log = []
    try:
        with Manager(log), Manager(log, name="n"):
            raise ValueError("x")
    except ValueError:
        log.append("caught")
    return log


@program
def with_swallowed():
    log = []
    with Manager(log):
        with Manager(log, swallow=True, name="n"):
            raise ValueError("x")
        log.append("after")
    return log


@program
def with_return():
    log = []

    def f():
        with Manager(log):
            return 5

    def g():
        for i in range(3):
            with Manager(log, name=str(i)):
                if i == 1:
                    break
                continue
        return i

    return f(), g(), log


@program
def with_not_a_manager():
    with 3:
        pass
