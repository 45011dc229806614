"""Encoders of the location table and the exception table.

The formats are those of CPython's `Objects/locations.md` and `Objects/exception_handling_notes.txt`.
"""

from collections.abc import Iterable

from dynacheck.bytecode.instruction import NO_POSITIONS, Positions


def _varint(value: int) -> list[int]:
    out = []
    while value > 63:
        out.append(64 | (value & 63))
        value >>= 6
    out.append(value)
    return out


def _signed_varint(value: int) -> list[int]:
    return _varint((-value << 1) | 1 if value < 0 else value << 1)


def _location(positions: Positions, units: int, previous: int) -> list[int]:
    """Encode one entry of at most 8 units; `previous` is the line of the entry before."""
    line, end_line, column, end_column = positions
    head = 128 | (units - 1)
    if line is None:
        return [head | 15 << 3]
    delta = line - previous
    if column is None or end_column is None:
        if end_line is None or end_line == line:
            return [head | 13 << 3, *_signed_varint(delta)]
    elif end_line == line:
        if delta == 0 and column < 80 and 0 <= end_column - column < 16:
            return [head | (column >> 3) << 3, (column & 7) << 4 | (end_column - column)]
        if 0 <= delta < 3 and column < 128 and end_column < 128:
            return [head | (10 + delta) << 3, column, end_column]
    return [
        head | 14 << 3,
        *_signed_varint(delta),
        *_varint((line if end_line is None else end_line) - line),
        *_varint(0 if column is None else column + 1),
        *_varint(0 if end_column is None else end_column + 1),
    ]


def location_table(rows: Iterable[tuple[Positions, int]], firstlineno: int) -> bytes:
    """Encode positions of consecutive instructions.

    Args:
        rows: (positions, size in code units), in code order.
        firstlineno: the code object's first line.

    Returns:
        The value for `co_linetable`.
    """
    out = bytearray()
    line = firstlineno
    run: Positions = NO_POSITIONS
    run_units = 0

    def flush() -> None:
        nonlocal line, run_units
        while run_units > 0:
            out.extend(_location(run, min(run_units, 8), line))
            run_units -= 8
            if run[0] is not None:
                line = run[0]
        run_units = 0

    for positions, units in rows:
        if positions != run:
            flush()
            run = positions
        run_units += units
    flush()
    return bytes(out)


def _entry_varint(value: int, first: int = 0) -> list[int]:
    out = [value & 63]
    value >>= 6
    while value:
        out.append(64 | (value & 63))
        value >>= 6
    out[-1] |= first
    out.reverse()
    return out


def exception_table(rows: Iterable[tuple[int, int, int, int, bool]]) -> bytes:
    """Encode exception-table rows.

    Args:
        rows: (start, stop, target, depth, lasti) in code units, in code order.

    Returns:
        The value for `co_exceptiontable`.
    """
    out = bytearray()
    for start, stop, target, depth, lasti in rows:
        out.extend(_entry_varint(start, first=128))
        out.extend(_entry_varint(stop - start))
        out.extend(_entry_varint(target))
        out.extend(_entry_varint(depth << 1 | lasti))
    return bytes(out)
