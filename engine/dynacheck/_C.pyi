"""The native part: frame hook, per-code entries, guard programs (sources in csrc/)."""

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final, Self, TypeAlias, final

ABI: Final[int]
NULL: Final[object]  # stands for an empty argument slot or an empty cell where a tuple must hold something
InstanceMethod: Final[type]  # of the functions in classes made by pybind, which `types` has no name for

# What the hook calls when no entry of the code object passes, with the hook off on this thread.
# `args`: the values of the argument slots (co_argcount + kwonly + *args + **kwargs, in slot order), raw:
# arguments that become cells aren't cells yet. Returns an Entry, valid for this frame already: it is run without
# checking, and added to `state` in front unless already there. Or None: run the frame as it is. What it raises
# leaves the call; an entry that is dead or doesn't fit is a ValueError there. Mode changes that it makes end
# with it. Or False: run the frame as it is, and all below it with existing entries only.
Callback: TypeAlias = Callable[[FunctionType, tuple[Any, ...], "CodeState"], "Entry | bool | None"]

@final
class GuardProgram:
    """A compiled guard trie; see guards/program.py for the specification it is built from."""

    def __init__(self, spec: tuple[Any, ...]) -> None: ...
    def check(self, args: tuple[Any, ...], func: FunctionType) -> bool:
        """Verdict for these argument slots and this function (globals, closure, defaults)."""
    def captured(self, args: tuple[Any, ...], func: FunctionType) -> tuple[Any, ...] | None:
        """The captured slot values when the guards pass, else None."""
    def bench(self, args: tuple[Any, ...], func: FunctionType, n: int) -> float:
        """Nanoseconds per check."""
    def stats(self) -> dict[str, int]: ...
    @property
    def alive(self) -> bool: ...  # False once an object that it holds weakly died: it never passes again
    @property
    def captures(self) -> int: ...  # how many values it hands over

@final
class Entry:
    """One guarded piece of rewritten code.

    With a program that captures slots, `code` has one local more than arguments at index nargs; the hook
    stores the tuple of captured values there before the first instruction.

    A program serves one entry, an entry one code object. `region` None stands for no region being set.
    """

    def __new__(
        cls,
        program: GuardProgram | None,
        code: CodeType,
        region: Region | None,
        owner: object = None,  # strong: what the engine wants to find again from an entry (a Python record)
        splits: bool = False,  # the code ends in a graph break: not for calls that want the whole frame
    ) -> Self: ...
    program: Final[GuardProgram | None]
    code: Final[CodeType]
    owner: Final[object]
    hits: int  # by the hook; the run right after the callback returned it isn't one
    @property
    def region(self) -> Region | None: ...  # held weakly; None when dead
    @property
    def alive(self) -> bool: ...  # False once its region or an object held weakly died, or invalidated
    def invalidate(self) -> None: ...
    def on_death(self, fn: Callable[[Entry], None] | None) -> None:
        """Have fn(entry) called once, when `alive` turns False; at once when it is False already."""

@final
class CodeState:
    """What the engine keeps on a code object; dies with it."""

    skip: bool  # run the frame as it is, keep looking at its callees
    skip_recursive: bool  # run the frame and everything below it with the hook off
    run_only: bool  # existing entries serve; never call back
    hits: int
    misses: int  # frames looked at that no entry passed for: not those of code marked skip
    data: Any  # for the runtime layer; None at first
    @property
    def code(self) -> CodeType | None: ...
    @property
    def entries(self) -> tuple[Entry, ...]:
        """Live ones in the order they are tried: new ones in front; two hits in a row move one there."""
    def add(self, entry: Entry) -> None:
        """Put it in front, unless it is there.

        Raises:
            ValueError: the entry is dead, another code object's, or its code doesn't fit the frames of this
                one (arguments, their names and order, flags, free variables, generators).
        """
    def remove(self, entry: Entry) -> None: ...
    def clear(self) -> None: ...  # as new: no entries, flags, counts, data

@final
class Region:
    """Identity of a compile region: lookups only see entries of the region that is current on the thread."""

    def __new__(cls, key: object = None) -> Self: ...
    key: Final[object]

@final
class HookedCall:
    """fn called with the hook on for this thread: keeps mode, callback and region and restores them.

    `callback` False is run_only. Like a function it binds in classes, takes attributes, is copied as itself
    and pickled by name. `__wrapped__` can't be set; functools.update_wrapper does: copy the other attributes.
    """

    def __new__(
        cls,
        fn: Callable[..., Any],
        callback: Callback | bool | None,
        region: Region | None = None,
        run_only: bool = False,
        whole: bool = False,  # entries that split a frame don't serve
    ) -> Self: ...
    __wrapped__: Final[Callable[..., Any]]
    __dict__: dict[str, Any]
    def __get__(self, obj: Any, type: Any = None, /) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class HookOff:
    """fn called with the hook off for this thread only (graph callables, `disable`)."""

    def __new__(cls, fn: Callable[..., Any]) -> Self: ...
    __wrapped__: Final[Callable[..., Any]]
    __dict__: dict[str, Any]
    def __get__(self, obj: Any, type: Any = None, /) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class GraphOwner:
    """Owns what a backend made of a graph. Rewritten code has its `call` as a constant, which doesn't own it."""

    def __new__(cls, fn: Callable[..., Any], recovery: object = None) -> Self: ...
    fn: Final[Callable[..., Any]]
    @property
    def call(self) -> GraphCall: ...  # the same one as long as it lives

@final
class GraphCall:
    """Calls its owner's callable with the hook off; a ReferenceError once the owner is gone."""

    @property
    def __wrapped__(self) -> Callable[..., Any] | None: ...
    @property
    def recovery(self) -> Any: ...  # what its owner was given, None once that is gone
    def __call__(self, *args: Any) -> Any: ...

@final
class Rerun(BaseException):
    """Raised by rewritten code: the frame, which has changed nothing yet, is to be run again as it is.

    `call()` does that, with the hook off; then `after(returned)` may give another exception to raise.
    """

    def __init__(self, call: Callable[[], Any], after: Callable[[bool], BaseException | None]) -> None: ...

def set_callback(callback: Callback | bool | None, region: Region | None = None) -> tuple[Any, Any]:
    """Set this thread's mode: a callable (on), False (existing entries only) or None (off).

    Returns the previous (callback, region), to be given back. Inside a HookedCall, HookOff, callback or frame
    marked skip_recursive the change lasts no longer than that.
    """

def current_region() -> Region | None: ...
def hook_active() -> bool: ...  # this thread, now
def thread_counts() -> tuple[int, int]: ...  # (hits, misses) of this thread since it started
def state(code: CodeType) -> CodeState: ...  # made on first need
def peek_state(code: CodeType) -> CodeState | None: ...
def states() -> list[CodeState]: ...  # all live ones, for reset()
def set_hot_list(fn: Callable[[Entry, FunctionType], Any] | None) -> None:
    """Have fn(entry, func) called on every hit, on any thread, with the hook off.

    What it raises leaves the call. None: nothing is called.
    """

def hook_stats() -> dict[str, Any]:
    """`evaluator` ("hook", "default" or "other"), `users`, `installed`, and how frames were run, counted."""

def force(name: str, value: int) -> None: ...  # testing switches: "fallback", "shortcut", ...

GUARD_OPS: Final[dict[str, int]]  # numbers of the native checks
GUARD_ACCESSORS: Final[dict[str, int]]  # numbers of the native accessors

# Reading torch without linking it; see guards/access.py and guards/state.py.
# samples: (tensor, _cdata, dispatch keys, strided, how a gradient is required, storage)
def setup_tensors(samples: list[tuple[Any, int, int, bool, int, int]], library: str) -> bool: ...
def tensor_offsets() -> tuple[
    int, int, int, int, int
]: ...  # of keys, rank, dtype, storage, autograd's record; 0: not found
def tensors_ready() -> bool: ...
def tensor_facts(
    tensor: Any,
) -> tuple[int, int, int, bool, tuple[int, ...] | None, tuple[int, ...] | None]: ...
def native_symbol(name: str) -> int: ...  # its address, or 0
def ambient_read(signature: int, address: int, argument: int) -> int | None: ...
def context_field(getter: int) -> int: ...
def ambient_ready() -> bool: ...
def lacks_dict(obj: object) -> bool:
    """Whether an object may have a dict, and has none as long as nobody asks for it."""

def type_lookup(cls: object, name: str, default: object) -> object:
    """The raw entry of the first class of the MRO that has the name, or the default."""
