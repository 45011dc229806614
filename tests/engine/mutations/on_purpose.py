"""Where the bundled engine serves a call after a change otherwise than torch.compile does, and why.

Calls that raise in plain Python, and calls for which torch gives a wrong result, are compared with plain Python only.
"""

import re

ON_PURPOSE = {
    r"(hook|_hooks: )": "hooks are guarded; torch takes them for given",
    r": (equal __code__|__code__)$": "a function's code is guarded; torch keeps to the function or looks at nothing",
    r"globals\.\w+(\.\w+)?: another of the same code$": "functions of modules and classes are guarded by identity, as "
    "classes are",
    r"globals\.\w+\.(forward|inner|__?\w+): replaced$": "methods are guarded by identity; torch "
    "looks at no special method of a class, nor at a module's own methods",
    r"globals\.\w+: __getattribute__$": "a class whose attributes are looked up otherwise isn't the one that was "
    "translated; torch looks at no special method of a class",
    r"globals\.(OPTIONS\.rate|Color\.RED): deleted$": "what an object or class had itself is guarded there; torch "
    "looks at what is found, and that is equal: the default of a data class, the member that the class of enums finds",
    r"globals\.Options\.rate: (None|deleted)$": "the type of what a class has under the name of an object's attribute is "
    "guarded, which could take the attribute over; torch doesn't look there",
    r"globals\.\w+: replaced by a subclass$": "classes are guarded by identity; torch looks at what was found in them",
    r"globals\.\w+: bases$": "what is looked up in a class is guarded, wherever it is found; torch guards the place",
}


def reason(mutation: str) -> str:
    """Why the outcomes after this change may differ; an empty string if they must not."""
    return next((why for pattern, why in ON_PURPOSE.items() if re.search(pattern, mutation)), "")
