"""Bodies of `topics/` some of whose programs don't agree with torch yet (strict: bodies that all agree fail)."""

__all__ = ["DIFFERENT"]

_FINALLY = (
    "what a `finally` returns through has a graph of its own here, behind the break that torch gives up for"
)
_STATEMENT = "torch keeps the operations before a `try` with a break in it, and leaves the rest alone"

# topic and body -> what differs
DIFFERENT: dict[tuple[str, str], str] = {
    ("exceptions_in_callees", "finally_in_the_callee"): _FINALLY,
    ("exceptions_in_callees", "raised_by_an_operator"): _STATEMENT,
}
