"""Emission of bytecode that hides the version: one method per thing to do, not per opcode."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Final

from dynacheck.bytecode.instruction import Positions
from dynacheck.bytecode.operands import BINARY_OPS, COMPARE_OPS, COMPARE_SHIFT, OPMAP
from dynacheck.bytecode.ops import Cell, Cover, Label, Local, Op, Operand
from dynacheck.versions import PY312, PY313, PY314

_BY_VALUE: Final = (int, str, bytes, bool, type(None), type(Ellipsis))
_COMPARE_MASKS: Final[dict[str, int]] = (
    # 3.12+ keep, below the operator, which outcomes (unordered, less, greater, equal) make it true
    {"<": 2, "<=": 2 | 8, "==": 8, "!=": 1 | 2 | 4, ">": 4, ">=": 4 | 8} if PY312 else {}
)
_SUBSCRIPT: Final = "[]"


class Builder:
    """A list of operations under construction, for the frame of a template code object.

    Constants and names start as the template's, so that copied instructions keep their operands. `positions`
    and `cover` (source position, exception handler) apply to what is appended from then on; at first they are
    the template's first line, and no handler.

    Calls: the callable and a NULL must lie in the order the version wants. Either ask the loading method
    (`load_global("f", push_null=True)`, `load_method("m")`), or put `null_first()` before and `null_last()`
    after whatever loads the callable, or call `prepare_call()` with the callable on top. Then push the
    arguments, then `call(n)`.

    Args:
        template: the code object whose frame runs the result.

    >>> from dynacheck.bytecode.assemble import assemble
    >>> def double(x):
    ...     return None
    >>> build = Builder(double.__code__)
    >>> build.load_fast("x"); build.load_const(2); build.binary_op("*"); build.return_value()
    >>> double.__code__ = assemble(build)
    >>> double(21)
    42
    """

    def __init__(self, template: CodeType) -> None:
        self.template: Final = template
        self.ops: Final[list[Op]] = []
        self.positions: Positions = (template.co_firstlineno, template.co_firstlineno, None, None)
        self.cover: Cover | None = None
        self._names: dict[str, int] = {name: index for index, name in enumerate(template.co_names)}
        self._consts: list[object] = list(template.co_consts)
        self._const_index: dict[object, int] = {}
        for index in reversed(range(len(self._consts))):
            self._const_index[_const_key(self._consts[index])] = index
        self._locals: dict[str, None] = {}
        self._cells = set(template.co_cellvars).union(set(template.co_freevars) - set(template.co_varnames))

    # -- tables

    @property
    def names(self) -> tuple[str, ...]:
        """`co_names` so far."""
        return tuple(self._names)

    @property
    def consts(self) -> tuple[object, ...]:
        """`co_consts` so far."""
        return tuple(self._consts)

    @property
    def locals(self) -> tuple[str, ...]:
        """Names of the locals that were used, in order of first use."""
        return tuple(self._locals)

    def name_index(self, name: str) -> int:
        """Return the index of a name in `co_names`, added if new."""
        return self._names.setdefault(name, len(self._names))

    def const_index(self, value: object) -> int:
        """Return the index of a constant, added if new; only simple values of one type are shared."""
        key = _const_key(value)
        index = self._const_index.get(key)
        if index is None:
            index = self._const_index[key] = len(self._consts)
            self._consts.append(value)
        return index

    # -- where

    def at(self, positions: Positions | int | None) -> None:
        """Set the source position, or the line, of what follows."""
        if positions is None or isinstance(positions, int):
            positions = (positions, positions, None, None)
        self.positions = positions

    @contextmanager
    def covered(self, target: Label, depth: int, lasti: bool = False) -> Iterator[None]:
        """Send exceptions of what is appended inside to a handler that keeps `depth` stack values."""
        outer, self.cover = self.cover, Cover(target, depth, lasti)
        if PY313:
            # the handler of an exception from a callee is looked up at the code unit before the call
            self.nop()
        try:
            yield
        finally:
            self.cover = outer

    def label(self) -> Label:
        """Return a new label, not placed yet."""
        return Label()

    def place(self, label: Label) -> None:
        """Put the label before whatever is appended next.

        Raises:
            ValueError: the label is placed already.
        """
        if label.position is not None:
            raise ValueError("the label is placed already")
        label.position = len(self.ops)

    def emit(self, opname: str, arg: Operand = 0) -> None:
        """Append one instruction by its name in this version; the methods below are to be preferred.

        Raises:
            KeyError: this version has no such opcode.
        """
        self.ops.append(Op(OPMAP[opname], arg, self.positions, self.cover))

    # -- loads and stores

    def load_const(self, value: object) -> None:
        """Push a constant: any object, kept by the code object."""
        self.emit("LOAD_CONST", self.const_index(value))

    def _local(self, name: str) -> Local:
        if name in self._cells:
            raise ValueError(f"{name} is a cell of {self.template.co_qualname}, not a plain local")
        self._locals[name] = None
        return Local(name)

    def load_fast(self, name: str) -> None:
        """Push a local that is bound, or raise UnboundLocalError."""
        self.emit("LOAD_FAST_CHECK" if PY312 else "LOAD_FAST", self._local(name))

    def load_bound(self, name: str) -> None:
        """Push a local that is known to be bound (unchecked on 3.12+)."""
        self.emit("LOAD_FAST", self._local(name))

    def take_fast(self, name: str) -> None:
        """Push a local that is known to be bound, and unbind it."""
        if PY312:
            self.emit("LOAD_FAST_AND_CLEAR", self._local(name))
        else:
            self.load_bound(name)
            self.delete_fast(name)

    def store_fast(self, name: str) -> None:
        """Pop into a local."""
        self.emit("STORE_FAST", self._local(name))

    def delete_fast(self, name: str) -> None:
        """Unbind a local; it must be bound."""
        self.emit("DELETE_FAST", self._local(name))

    def load_deref(self, name: str) -> None:
        """Push what a cell or free variable holds."""
        self.emit("LOAD_DEREF", Cell(name))

    def store_deref(self, name: str) -> None:
        """Pop into a cell or free variable."""
        self.emit("STORE_DEREF", Cell(name))

    def delete_deref(self, name: str) -> None:
        """Empty a cell; it must hold something."""
        self.emit("DELETE_DEREF", Cell(name))

    def load_closure(self, name: str) -> None:
        """Push the cell object itself of a cell or free variable."""
        self.emit("LOAD_FAST" if PY313 else "LOAD_CLOSURE", Cell(name))

    def load_global(self, name: str, *, push_null: bool = False) -> None:
        """Push a global or builtin; with `push_null` ready to be called."""
        self.emit("LOAD_GLOBAL", self.name_index(name) << 1 | push_null)

    def store_global(self, name: str) -> None:
        """Pop into a global."""
        self.emit("STORE_GLOBAL", self.name_index(name))

    def delete_global(self, name: str) -> None:
        """Delete a global."""
        self.emit("DELETE_GLOBAL", self.name_index(name))

    def load_attr(self, name: str) -> None:
        """Replace the top by its attribute."""
        self.emit("LOAD_ATTR", self.name_index(name) << 1 if PY312 else self.name_index(name))

    def store_attr(self, name: str) -> None:
        """[value, object] → []: set the attribute."""
        self.emit("STORE_ATTR", self.name_index(name))

    def delete_attr(self, name: str) -> None:
        """[object] → []: delete the attribute."""
        self.emit("DELETE_ATTR", self.name_index(name))

    def binary_subscr(self) -> None:
        """[container, key] → [item]."""
        if PY314:
            self.emit("BINARY_OP", BINARY_OPS.index("[]" if "[]" in BINARY_OPS else "["))
        else:
            self.emit("BINARY_SUBSCR")

    def store_subscr(self) -> None:
        """[value, container, key] → []: set the item."""
        self.emit("STORE_SUBSCR")

    def delete_subscr(self) -> None:
        """[container, key] → []: delete the item."""
        self.emit("DELETE_SUBSCR")

    # -- operators

    def binary_op(self, symbol: str) -> None:
        """[left, right] → [result], for `+`, `@`, `+=`, …"""
        self.emit("BINARY_OP", BINARY_OPS.index(symbol))

    def compare_op(self, symbol: str) -> None:
        """[left, right] → [result], for `<`, `<=`, `==`, `!=`, `>`, `>=`; the result is as it comes."""
        number = COMPARE_OPS.index(symbol) << COMPARE_SHIFT
        self.emit("COMPARE_OP", number | _COMPARE_MASKS.get(symbol, 0))

    def is_op(self, invert: bool = False) -> None:
        """[left, right] → [left is right]."""
        self.emit("IS_OP", int(invert))

    def contains_op(self, invert: bool = False) -> None:
        """[item, container] → [item in container]."""
        self.emit("CONTAINS_OP", int(invert))

    def unary_op(self, symbol: str) -> None:
        """[value] → [result], for `-`, `~`, `+`, `not`."""
        if symbol == "-":
            self.emit("UNARY_NEGATIVE")
        elif symbol == "~":
            self.emit("UNARY_INVERT")
        elif symbol == "not":
            self.to_bool()
            self.emit("UNARY_NOT")
        elif PY312:
            self.emit("CALL_INTRINSIC_1", 5)  # INTRINSIC_UNARY_POSITIVE
        else:
            self.emit("UNARY_POSITIVE")

    def to_bool(self) -> None:
        """Make the top fit for `not` and conditional jumps, where the version asks for an exact bool."""
        if PY313:
            self.emit("TO_BOOL")

    # -- building

    def build_tuple(self, n: int) -> None:
        """Pop n values, push them as a tuple."""
        self.emit("BUILD_TUPLE", n)

    def build_list(self, n: int) -> None:
        """Pop n values, push them as a list."""
        self.emit("BUILD_LIST", n)

    def build_set(self, n: int) -> None:
        """Pop n values, push them as a set."""
        self.emit("BUILD_SET", n)

    def build_map(self, n: int) -> None:
        """Pop n pairs (key below value), push a dict."""
        self.emit("BUILD_MAP", n)

    def build_slice(self, n: int) -> None:
        """Pop 2 or 3 values, push a slice."""
        self.emit("BUILD_SLICE", n)

    def build_string(self, n: int) -> None:
        """Pop n strings, push their concatenation."""
        self.emit("BUILD_STRING", n)

    def list_append(self, depth: int = 1) -> None:
        """[list, …, item] → [list, …]; the list is `depth` below the item."""
        self.emit("LIST_APPEND", depth)

    def list_extend(self, depth: int = 1) -> None:
        """[list, …, iterable] → [list, …]."""
        self.emit("LIST_EXTEND", depth)

    def list_to_tuple(self) -> None:
        """[list] → [tuple]."""
        if PY312:
            self.emit("CALL_INTRINSIC_1", 6)  # INTRINSIC_LIST_TO_TUPLE
        else:
            self.emit("LIST_TO_TUPLE")

    def dict_update(self, depth: int = 1) -> None:
        """[dict, …, mapping] → [dict, …]."""
        self.emit("DICT_UPDATE", depth)

    def unpack_sequence(self, n: int) -> None:
        """[sequence] → its n items, the first on top."""
        self.emit("UNPACK_SEQUENCE", n)

    # -- the stack

    def pop(self) -> None:
        """Drop the top."""
        self.emit("POP_TOP")

    def copy(self, depth: int = 1) -> None:
        """Push the value `depth` from the top again (1: the top)."""
        self.emit("COPY", depth)

    def swap(self, depth: int = 2) -> None:
        """Exchange the top with the value `depth` from the top (2: the next)."""
        self.emit("SWAP", depth)

    def rotate_down(self, depth: int) -> None:
        """Move the top below the `depth - 1` values under it."""
        for i in range(depth, 1, -1):
            self.swap(i)

    def rotate_up(self, depth: int) -> None:
        """Move the value `depth` from the top to the top."""
        for i in range(2, depth + 1):
            self.swap(i)

    def push_null(self) -> None:
        """Push a NULL."""
        self.emit("PUSH_NULL")

    # -- calls

    def null_first(self) -> None:
        """To be put before the loading of a callable."""
        if not PY313:
            self.push_null()

    def null_last(self) -> None:
        """To be put after the loading of a callable."""
        if PY313:
            self.push_null()

    def prepare_call(self) -> None:
        """Make the callable on top ready for its arguments."""
        self.push_null()
        if not PY313:
            self.swap()

    def load_method(self, name: str) -> None:
        """Replace the top by its method, ready for arguments."""
        if PY312:
            self.emit("LOAD_ATTR", self.name_index(name) << 1 | 1)
        else:
            self.emit("LOAD_METHOD", self.name_index(name))

    def call(self, n: int, kwnames: Sequence[str] = ()) -> None:
        """Call with the n values on top; the last `len(kwnames)` of them are keyword arguments."""
        if kwnames and PY313:
            self.load_const(tuple(kwnames))
            self.emit("CALL_KW", n)
            return
        if kwnames:
            self.emit("KW_NAMES", self.const_index(tuple(kwnames)))
        if not PY312:
            self.emit("PRECALL", n)
        self.emit("CALL", n)

    def call_function_ex(self, *, kwargs: bool = False) -> None:
        """[callable made ready, args tuple (, kwargs dict)] → [result]."""
        if PY314:
            if not kwargs:
                self.push_null()
            self.emit("CALL_FUNCTION_EX")
        else:
            self.emit("CALL_FUNCTION_EX", int(kwargs))

    def make_function(self, code: CodeType, closure: Sequence[str] = ()) -> None:
        """Push a function.

        Args:
            code: its code object.
            closure: names of this frame's cells that the function shares, as in `code.co_freevars`.
        """
        for name in closure:
            self.load_closure(name)
        if closure:
            self.build_tuple(len(closure))
        self.load_const(code)
        if PY313:
            self.emit("MAKE_FUNCTION")
            if closure:
                self.emit("SET_FUNCTION_ATTRIBUTE", 8)
        else:
            self.emit("MAKE_FUNCTION", 8 if closure else 0)

    # -- control

    def jump(self, label: Label) -> None:
        """Jump."""
        self.emit("JUMP_FORWARD" if label.position is None else "JUMP_BACKWARD", label)

    def _pop_jump(self, condition: str, label: Label) -> None:
        backward = label.position is not None
        if not PY312:
            direction = "BACKWARD" if backward else "FORWARD"
            self.emit(f"POP_JUMP_{direction}_IF_{condition}", label)
        elif backward:
            opposite = {"TRUE": "FALSE", "FALSE": "TRUE", "NONE": "NOT_NONE", "NOT_NONE": "NONE"}
            past = self.label()
            self.emit(f"POP_JUMP_IF_{opposite[condition]}", past)
            self.emit("JUMP_BACKWARD", label)
            self.place(past)
        else:
            self.emit(f"POP_JUMP_IF_{condition}", label)

    def pop_jump_if(self, truth: bool, label: Label) -> None:
        """Pop a value; jump if its truth is that."""
        self.to_bool()
        self._pop_jump("TRUE" if truth else "FALSE", label)

    def pop_jump_if_none(self, label: Label) -> None:
        """Pop a value; jump if it is None."""
        self._pop_jump("NONE", label)

    def pop_jump_if_not_none(self, label: Label) -> None:
        """Pop a value; jump if it isn't None."""
        self._pop_jump("NOT_NONE", label)

    def get_iter(self) -> None:
        """[iterable] → [iterator]."""
        self.emit("GET_ITER")

    def return_value(self) -> None:
        """Return the top."""
        self.emit("RETURN_VALUE")

    def raise_top(self) -> None:
        """Raise the exception (instance or class) on top."""
        self.emit("RAISE_VARARGS", 1)

    def nop(self) -> None:
        """Do nothing (a place for a label or a line)."""
        self.emit("NOP")

    # -- blocks

    def enter_with(self) -> None:
        """[manager] → [exit, what `__enter__` gave]; on 3.14 the exit takes two stack values."""
        if PY314:
            self.copy()
            self.emit("LOAD_SPECIAL", 1)  # __exit__
            self.swap(2)
            self.swap(3)
            self.emit("LOAD_SPECIAL", 0)  # __enter__
            self.emit("CALL", 0)
        else:
            self.emit("BEFORE_WITH")

    def exit_with(self) -> None:
        """[exit] → []: call it with three None, as at the normal end of a `with` block."""
        for _ in range(3):
            self.load_const(None)
        self.call(
            3 if PY314 else 2
        )  # below 3.14 the exit sits in the slot of NULL: its first argument counts as self
        self.pop()

    def with_handler(self, handler: Label, after: Label, depth: int) -> None:
        """Append the handler of a `with` block: call the exit with the exception, re-raise or go on.

        Args:
            handler: placed here; the block is to be covered by it with `depth + exit_width` and lasti.
            after: where execution goes on, with the exit popped, if the exception was suppressed.
            depth: number of stack values below the exit.
        """
        cleanup, suppress = self.label(), self.label()
        self.place(handler)
        inner = Cover(cleanup, depth + self.exit_width + 2, True)
        outer, self.cover = self.cover, inner
        self.emit("PUSH_EXC_INFO")
        self.emit("WITH_EXCEPT_START")
        self.pop_jump_if(True, suppress)
        self.emit("RERAISE", 2)
        self.place(suppress)
        self.pop()
        self.cover = outer
        self.emit("POP_EXCEPT")
        for _ in range(1 + self.exit_width):
            self.pop()
        self.jump(after)
        self._end_handler(cleanup)

    exit_width: Final = 2 if PY314 else 1
    """Stack values that the exit of a `with` block takes."""

    @contextmanager
    def finally_handler(self, handler: Label, depth: int = 0) -> Iterator[None]:
        """Append the handler of a `finally`: what is appended inside is its clean-up, then it re-raises.

        Args:
            handler: placed here; the block is to be covered by it, without lasti.
            depth: number of stack values kept, as in that cover.
        """
        cleanup = self.label()
        self.place(handler)
        outer, self.cover = self.cover, None
        self.emit("PUSH_EXC_INFO")
        with self.covered(cleanup, depth + 1, lasti=True):
            yield
            self.emit("RERAISE", 0)
        self.cover = outer
        self._end_handler(cleanup)

    def _end_handler(self, cleanup: Label) -> None:
        """Append where a raising handler goes: end the handling, raise on."""
        self.place(cleanup)
        self.emit("COPY", 3)
        self.emit("POP_EXCEPT")
        self.emit("RERAISE", 1)


def _const_key(value: object) -> object:
    if type(value) in _BY_VALUE:
        return type(value), value
    if type(value) is tuple and all(type(item) is str for item in value):
        return tuple, value
    return type(value), id(value)
