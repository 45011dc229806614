"""The native part: frame hook, per-code entries, guard programs (sources in csrc/)."""

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final, TypeAlias, final

ABI: Final[int]
NULL: Final[object]  # stands for an empty argument slot or an empty cell where a tuple must hold something

# What the hook calls when no entry of the code object passes. It runs with the hook off on this thread.
# `args`: the values of the argument slots (co_argcount + kwonly + *args + **kwargs, in slot order), raw (arguments
# that become cells aren't cells yet). Returns an Entry (already valid for this frame: it is run without checking,
# and added to `state` in front unless already there), or None: run the frame as it is.
Callback: TypeAlias = Callable[["FunctionType", tuple[Any, ...], "CodeState"], "Entry | None"]

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

    With a program that captures slots, `code` has one local more than arguments at index nargs; the hook stores the
    tuple of captured values there before the first instruction.
    """

    def __init__(
        self,
        program: GuardProgram | None,
        code: CodeType,
        region: object,
        owner: object = None,  # strong: what the engine wants to find again from an entry (a Python record)
    ) -> None: ...
    program: Final[GuardProgram | None]
    code: Final[CodeType]
    owner: Final[object]
    hits: int
    @property
    def region(self) -> object | None: ...  # held weakly; None when dead
    @property
    def alive(self) -> bool: ...  # False once a weakly held object of the entry or its region died, or invalidated
    def invalidate(self) -> None: ...
    def on_death(self, fn: Callable[["Entry"], None] | None) -> None: ...

@final
class CodeState:
    """What the engine keeps on a code object; dies with it."""

    skip: bool  # run the frame as it is, keep looking at its callees
    skip_recursive: bool  # run the frame and everything below it with the hook off
    run_only: bool  # existing entries serve; never call back
    hits: int
    misses: int
    data: Any  # for the runtime layer
    @property
    def code(self) -> CodeType | None: ...
    @property
    def entries(self) -> tuple[Entry, ...]: ...  # live ones, hottest first
    def add(self, entry: Entry) -> None: ...
    def remove(self, entry: Entry) -> None: ...
    def clear(self) -> None: ...

@final
class Region:
    """Identity of a compile region: lookups only see entries of the region that is current on the thread."""

    def __init__(self, key: object = None) -> None: ...
    key: Final[object]
    __weakref__: object

@final
class HookedCall:
    """fn called with the hook on for this thread: vectorcall, keeps mode, callback and region and restores them."""

    def __init__(self, fn: Callable[..., Any], callback: Callback | None, region: Region | None = None, run_only: bool = False) -> None: ...
    __wrapped__: Final[Callable[..., Any]]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class HookOff:
    """fn called with the hook off for this thread only (graph callables, `disable`)."""

    def __init__(self, fn: Callable[..., Any]) -> None: ...
    __wrapped__: Final[Callable[..., Any]]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def set_callback(callback: Callback | None | bool, region: Region | None = None) -> tuple[Any, Any]:
    """Set this thread's mode: a callable (on), False (existing entries only) or None (off); returns the previous (callback, region)."""

def current_region() -> Region | None: ...
def hook_active() -> bool: ...  # this thread, now
def thread_counts() -> tuple[int, int]: ...  # (hits, misses) of this thread since it started
def state(code: CodeType) -> CodeState: ...  # made on first need
def peek_state(code: CodeType) -> CodeState | None: ...
def states() -> list[CodeState]: ...  # all live ones, for reset()
def set_hot_list(fn: Callable[..., Any] | None) -> None: ...  # called as fn(entry, func) on every hit while set (observers); None: nothing
def hook_stats() -> dict[str, Any]: ...
def force(name: str, value: int) -> None: ...  # testing switches: "fallback", "shortcut", ...

GUARD_OPS: Final[dict[str, int]]  # numbers of the native checks
GUARD_ACCESSORS: Final[dict[str, int]]  # numbers of the native accessors

# Reading torch without linking it; see guards/access.py and guards/state.py.
def setup_tensors(samples: list[tuple[Any, int, int]], library: str) -> bool: ...  # (tensor, _cdata, dispatch keys)
def tensors_ready() -> bool: ...
def tensor_facts(tensor: Any) -> tuple[int, int, int, bool, tuple[int, ...] | None, tuple[int, ...] | None]: ...
def native_symbol(name: str) -> int: ...  # its address, or 0
def ambient_read(signature: int, address: int, argument: int) -> int: ...
def ambient_ready() -> bool: ...
