"""Every reason why translation stops or a frame is left alone: a stable id, a sentence, a hint.

Ids are never reused. DC1xx: graph breaks; DC2xx: the frame is given up; DC3xx: the frame is left alone by rule.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_table: dict[str, Reason] = {}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason.

    Args:
        id: stable id, `DC101`.
        title: a few words.
        text: the sentence, with `{fields}` filled in when raised.
        hint: what the user can do.
        torch: torch's name of the same break (its `gb_type`), for the cross-engine table.
    """

    id: str
    title: str
    text: str
    hint: str
    torch: str = ""

    def __post_init__(self) -> None:
        if self.id in _table:
            raise ValueError(f"reason {self.id} is declared twice")
        _table[self.id] = self

    def message(self, **fields: object) -> str:
        """The sentence with its fields."""
        return self.text.format(**fields)


def break_text(reason: Reason, message: str, stack: Iterable[Any]) -> str:
    """A break as an error tells it: reason, hint, the user's stack as tracebacks show it."""
    lines = []
    for s in stack:
        text = s.text or linecache.getline(s.file, s.line)
        lines.append(f'  File "{s.file}", line {s.line}, in {s.function}\n    {text.strip()}'.rstrip())
    hint = f"\n  hint: {reason.hint}" if reason.hint else ""
    return f"{message} [{reason.id}]{hint}\nfrom user code:\n" + "\n".join(lines)


def all_reasons() -> tuple[Reason, ...]:
    """All reasons, by id."""
    return tuple(_table[k] for k in sorted(_table))


def by_id(reason_id: str) -> Reason:
    return _table[reason_id]


DATA_DEPENDENT_BRANCH = Reason(
    "DC101", "branch on a tensor's value",
    "`{opname}` needs the value of a tensor, which exists only when the graph runs.",
    "use torch.where or torch.cond, or move the branch out of the compiled function",
    "Data-dependent branching",
)  # fmt: skip
SCALAR_OUTPUT = Reason(
    "DC102", "a tensor's value is read into Python",
    "`{call}` needs the value of a tensor, which exists only when the graph runs.",
    "keep the value in a tensor, or set capture_scalar_outputs",
    "Unsupported Tensor.item() call with capture_scalar_outputs=False",
)  # fmt: skip
PRINT = Reason(
    "DC103", "call that writes output",
    "`{call}` has a side effect outside the graph and can't be traced.",
    "remove it, move it out of the compiled function, or add it to torch._dynamo.config.reorderable_logging_functions",
    "Failed to trace builtin operator",
)  # fmt: skip
EXPLICIT_BREAK = Reason(
    "DC104", "graph_break() was called", "The program asks for a graph break here.",
    "remove the call of graph_break()", "Call to `torch._dynamo.graph_break()`",
)  # fmt: skip
DISABLED_CALL = Reason(
    "DC105", "call of a disabled function",
    "`{call}` is marked with disable and runs as it is.{why}",
    "remove the disable, or move the call out of the compiled function",
    "Skip calling `torch.compiler.disable()`d function",
)  # fmt: skip
SKIPPED_CALL = Reason(
    "DC106", "call of a function that is never traced",
    "`{call}` is never traced ({why}).",
    "move the call out of the compiled function, or wrap it in a custom operator",
    "Attempted to call function marked as skipped",
)  # fmt: skip
UNKNOWN_CALL = Reason(
    "DC107", "call the engine can't trace", "A call of {what} can't be traced.",
    "move the call out of the compiled function, or report it", "Unsupported function call",
)  # fmt: skip
UNKNOWN_ATTRIBUTE = Reason(
    "DC108", "attribute the engine can't model", "The attribute {name!r} of {what} can't be modelled.",
    "read it outside of the compiled function", "Unsupported attribute access",
)  # fmt: skip
UNKNOWN_OPERATION = Reason(
    "DC109", "operation the engine can't model", "{operation} on {what} can't be modelled.",
    "move it out of the compiled function, or report it", "Unsupported operation",
)  # fmt: skip
UNKNOWN_OPCODE = Reason(
    "DC110", "instruction the engine can't model", "The instruction {opname} isn't supported: {why}.",
    "move it out of the compiled function", "Missing bytecode handler",
)  # fmt: skip
UNKNOWN_VALUE = Reason(
    "DC111", "value the engine can't model", "A value of type {what} can't be modelled: {why}.",
    "keep it out of the compiled function", "Unsupported value",
)  # fmt: skip
DYNAMIC_SHAPE_OPERATOR = Reason(
    "DC112", "operator whose result's size depends on data",
    "`{call}` returns a tensor whose size depends on values.",
    "set capture_dynamic_output_shape_ops, or use a masked form (torch.where)",
    "Dynamic shape operator",
)  # fmt: skip
DATA_DEPENDENT_OPERATOR = Reason(
    "DC113", "operator whose result depends on data", "`{call}` needs the values of a tensor.",
    "keep the value in a tensor", "Data dependent operator",
)  # fmt: skip
OPERATOR_FAILED = Reason(
    "DC114", "operator that can't be propagated", "`{call}` can't be propagated: {why}.",
    "report it, or wrap the call in a custom operator", "Unsupported operator",
)  # fmt: skip
RNN = Reason(
    "DC115", "recurrent module", "{what} isn't traced, as torch.compile doesn't.",
    "write the cell with plain operators, or compile around it", "Attempted to wrap RNN, GRU, or LSTM",
)  # fmt: skip
CONTEXT_MANAGER = Reason(
    "DC116", "context manager the engine can't model", "The context manager {what} can't be entered: {why}.",
    "make it where it is entered (`with torch.no_grad():`), or enter it outside of the compiled function",
    "Unsupported context manager",
)  # fmt: skip
LOGGING_CALL = Reason(
    "DC117", "logging call", "`{call}` writes a log record and can't be traced.",
    "remove it, guard it with torch.compiler.is_compiling(), or add it to torch._dynamo.config.ignore_logging_functions",
    "logging.Logger method not supported for non-export cases",
)  # fmt: skip
BACKWARD_CALL = Reason(
    "DC118", "backward() inside the compiled function", "`{call}` runs autograd and isn't traced.",
    "call it outside of the compiled function", "Unsupported Tensor.backward() call",
)  # fmt: skip
FRAME_INSPECTION = Reason(
    "DC119", "the frame is inspected", "`{call}` looks at the frame, which the engine rewrites.",
    "don't inspect frames in compiled code", "Unsupported frame inspection",
)  # fmt: skip
GENERATOR_BREAK = Reason(
    "DC120", "break inside a generator", "A generator iterated in the frame can't be split.",
    "use a list, or move the operation out of the generator", "Graph break in generator",
)  # fmt: skip
RAISE_IN_TRY = Reason(
    "DC121", "operator that may raise inside a try",
    "`{call}` may raise because of values inside a `try` that would catch it, after writes or random draws of the graph.",
    "move the operator out of the try block, or what writes or draws behind it", "",
)  # fmt: skip
FINALIZER = Reason(
    "DC131", "finalizer that raises", "The end of {value}, made in the frame, raises {what}, which Python only prints.",
    "close it before the frame lets go of it", "",
)  # fmt: skip
TENSOR_KIND = Reason(
    "DC122", "tensor kind the engine can't model", "{what} can't be modelled.",
    "keep it out of the compiled function", "Unsupported tensor",
)  # fmt: skip
FUNCTION_SIDE_EFFECT = Reason(
    "DC123", "side effect in a function that an operator takes",
    "A function given to an operator (torch.cond, checkpoint, ...) changes {what}, which was made outside of it.",
    "return what it computes instead", "HOP: Unsafe side effect",
)  # fmt: skip
ESCAPED_VALUE = Reason(
    "DC124", "tensor that leaves a function that an operator takes",
    "A tensor made in a function given to an operator is used outside of it without being returned.",
    "return it from the function", "",
)  # fmt: skip
FUNCTION_FORM = Reason(
    "DC125", "function that an operator can't take",
    "{operator} can't be captured: {why}.",
    "see the operator's documentation for what its functions may do", "",
)  # fmt: skip
PYTHON_RESULT = Reason(
    "DC126", "operator that returns a Python value",
    "`{call}` returns a Python value ({what}), which a graph can't hold.",
    "call it outside of the compiled function", "torch.* op returned non-Tensor",
)  # fmt: skip
CREATES_LEAF = Reason(
    "DC127", "tensor made with requires_grad", "`{call}` makes a tensor that requires grad, which a graph can't return.",
    "make it outside of the compiled function", "Attempted to use tensor creation function with requires_grad=True",
)  # fmt: skip
RESIZE = Reason(
    "DC128", "change of what a tensor is", "`{call}` changes a tensor's size, strides, storage or history in place.",
    "make a new tensor", "Unsupported Tensor.resize_() call",
)  # fmt: skip
SYMBOLIC_NUMBER = Reason(
    "DC129", "plain number needed", "{operation} on {what}, a number that varies between calls, has no symbolic form.",
    "compute it outside of the compiled function, or keep the number static (mark_static, dynamic=False)",
    "sort with non-constant keys",
)  # fmt: skip
IMPORT = Reason(
    "DC130", "import in the compiled function", "`{call}` is never traced ({why}).",
    "move the import to the top of the module", "Import failure",
)  # fmt: skip
BACKWARD_HOOKS = Reason(
    "DC132", "module with backward hooks", "The backward hooks of {what} can't be traced.",
    "hook a tensor instead (`Tensor.register_hook`), or call the module outside of the compiled function",
    "Module-level backwards hooks require compiled autograd.",
)  # fmt: skip
UNCAUGHT_RAISE = Reason(
    "DC201", "the frame raises", "The frame ends by raising {what}.",
    "", "Observed exception",
)  # fmt: skip
BREAK_IN_LOOP = Reason(
    "DC202", "break inside a loop",
    "A graph break inside a `for` or `while` body: the frame can't be split and runs eagerly.",
    "move the breaking operation out of the loop, or the loop's body into a function of its own",
    "graph break in for/while loop",
)  # fmt: skip
BREAK_IN_TRY = Reason(
    "DC203", "break inside a try with handlers",
    "A graph break inside a `try` block with handlers: the frame can't be split and runs eagerly.",
    "move the breaking operation out of the try block", "graph break in try",
)  # fmt: skip
BREAK_IN_WITH = Reason(
    "DC204", "break inside a with block",
    "A graph break inside a `with` of a context manager that can't be re-entered: the frame runs eagerly.",
    "move the breaking operation out of the with block", "graph break under GenericContextWrappingVariable",
)  # fmt: skip
BREAK_NOT_RESUMABLE = Reason(
    "DC205", "frame that can't be left or split", "The frame can't be left or split here: {why}.",
    "make a list of what is iterated lazily", "Reconstruction failure",
)  # fmt: skip
TOO_DEEP = Reason(
    "DC207", "too deep to translate", "Interpreting the frame needs more of Python's stack than is left.",
    "make the recursion less deep, or keep it out of the compiled function", "",
)  # fmt: skip
INTERNAL = Reason("DC206", "fault of the engine", "The engine failed: {why}.", "please report it", "")
LIMIT = Reason(
    "DC301", "recompile limit", "{name} reached {limit_name} ({limit}).", "fix the value that keeps changing", "",
)  # fmt: skip
STANCE = Reason("DC302", "stance", "the stance is {stance}", "", "")
SKIP_FILE = Reason(
    "DC303", "file that is never traced", "{file} belongs to {what}, which isn't traced.", "", ""
)
NO_TENSOR_OPERATIONS = Reason(
    "DC304", "no tensor operation", "The frame has no tensor operation: it runs as it is.", "", ""
)
DISABLED = Reason("DC305", "disabled function", "{what} is marked with disable.", "", "")
AMBIENT_STATE = Reason("DC306", "ambient state", "Not traced while {what} is active.", "", "")
GRAPH_RAISED = Reason(
    "DC307", "the graph raised", "The graph raised while it ran: the frame ran again as it is.", "", ""
)

_ALSO: dict[Reason, tuple[str, ...]] = {
    DATA_DEPENDENT_BRANCH: (
        "Data-dependent branching with non-constant __bool__",
        "Data-dependent assertion failed (cannot compile partial graph)",
        "torch.fx.experimental.symbolic_shapes.guard_scalar branch not supported",
    ),
    SCALAR_OUTPUT: (
        "Tensor.tolist() with non-integer tensor",
        "nb_int_impl not implemented",
        "nb_float_impl not implemented",
    ),
    UNKNOWN_VALUE: ("torch.jit.script/freeze modules unsupported",),
    DISABLED_CALL: ("Skip inlining `torch.compiler.disable()`d function",),
    SKIPPED_CALL: (
        "Attempted to inline function marked as skipped",
        "Attempted to inline function marked as skipped (SkipFunctionVariable)",
        "unsupported contextlib.* API",
    ),
    UNKNOWN_CALL: (
        "Unsupported method call",
        "Attempted to copy.deepcopy a tensor",
        "copy.deepcopy()",
        "Unhandled args for method",
        "can't handle functions not implemented in python ",
        "invalid call to builtin op handler",
        "unimplemented builtin op on tensor arguments",
        "id() with unsupported args",
        "call_id() without associated real value",
        "Unhandled tensor method",
        "Unsupported ndarray method call",
        "Tensor.random_ op",
        "Tensor.uniform_ op called with `from` keyword",
        "Unsupported arguments for itertools.groupby",
        "Invalid call to __build_class__",
        "dataclass fields failure",
        "failed to bind arguments when attempting to inline",
        "register_hook with stride-dependent code",
        "Attempted to use `torch.nn.Parameter()` constructor with Dynamo",
        "Attempted to represent unregistered RemovableHandle",
        "An opaque object was created in the middle of the program.",
        "torch.Generator method",
    ),
    UNKNOWN_OPERATION: (
        "constant fold exception",
        "missing tp_iter",
        "missing sq_concat",
        "missing sq_contains",
        "missing sq_inplace_concat",
        "missing_mp_ass_subscript",
        "missing_mp_subscript",
        "setattr() on unsupported type",
        "Missing tp_iternext",
        "Failed to convert args/kwargs to proxy",
        "Data pointer comparison",
    ),
    PYTHON_RESULT: (
        "Encountered tensor.is_inference() during tracing",
        "Encountered torch.is_inference_mode_enabled during tracing",
    ),
    RESIZE: (
        "Unsupported Tensor.resize_as_() call",
        "Shape mismatch with out= tensor variant",
        "Shape mismatch with out= list of tensor variants",
        "Attempted to call op with non-contiguous `out=` tensor",
        "Attempted to call op with non-contiguous `out=` list of tensors",
        "Inplace op on input tensor",
        "Unsupported function call (delayed)",
    ),
    UNKNOWN_ATTRIBUTE: (
        "getattr with no source",
        "Unsupported hasattr call",
        "Unable to resolve super getattr",
        "User-defined object with non-function __getattr__",
        "Tensor with grad_fn()",
        "Unsupported ndarray attribute access",
    ),
    SYMBOLIC_NUMBER: (
        "Unsupported python_type() call",
        "Missing attribute when running call_method node",
        "repr_impl not implemented",
    ),
    UNKNOWN_OPCODE: (
        "LOAD_BUILD_CLASS bytecode not supported",
        "Missing CALL_INTRINSIC_1 handler",
        "Missing CALL_INTRINSIC_2 handler",
    ),
    DYNAMIC_SHAPE_OPERATOR: (
        "Dynamic shape operator (no meta kernel)",
        "Attempted to use `torch.nn.functional.one_hot` with data-dependent output shape",
    ),
    OPERATOR_FAILED: (
        "Fake tensor propagation exception",
        "TypeError when making fake tensor call",
        "RuntimeError when making fake tensor call",
        "NotImplementedError/UnsupportedFakeTensorException when running FX node",
        "Operator does not support running with fake tensors",
        "Attempted to wrap sparse Tensor with VariableTracker",
    ),
    BACKWARD_CALL: (
        "backward() with empty inputs",
        "backward() with in-graph created tensor",
        "backward() with non-leaf tensor",
        "using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`",
        "requires_grad_() intermediate leaked as output",
        "Unsupported Tensor.requires_grad_() call",
        "Tensor.retain_grad() with AOTDispatcher",
    ),
    GENERATOR_BREAK: ("Attempt to trace generator",),
    BREAK_NOT_RESUMABLE: ("Generator reconstruction with mutations",),
    FRAME_INSPECTION: ("Unsupported inspect call",),
    TENSOR_KIND: ("Attempted to wrap sparse Tensor", "Attempted to wrap strided NestedTensor"),
    UNCAUGHT_RAISE: ("Observed exception (EXCEPT_HANDLER)",),
    BREAK_IN_LOOP: ("graph break in loop",),
    BREAK_IN_WITH: ("Graph break under GenericContextWrappingVariable",),
    AMBIENT_STATE: ("Unsupported functorch tracing attempt", "skip frame due to being in functorh mode"),
}
"""Other names of torch's for a reason, beside the one that it is declared with."""


def by_torch_name(name: str) -> Reason | None:
    """The reason that torch's name of a break (its `gb_type`) stands for, None if it stands for none of ours."""
    return _by_torch_name.get(name)


_by_torch_name = {r.torch: r for r in all_reasons() if r.torch} | {
    name: reason for reason, names in _ALSO.items() for name in names
}
