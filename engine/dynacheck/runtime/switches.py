"""The few things a call of a compiled callable must look at: nobody observes, no stance is set, none through
torch."""

from __future__ import annotations

import sys
from typing import Any

from dynacheck import config

_EVAL_FRAME = "torch._dynamo.eval_frame"


class Switches:
    """Read on every call.

    Attributes:
        plain: no observer, and no stance but the default one anywhere: calls go straight to the hook.
        torch: the namespace with torch's stance as `_stance`; one of ours until torch's compiler is loaded.
        default: torch's stance when it is the default one.
    """

    __slots__ = ("_reasons", "default", "loaded", "plain", "torch")

    def __init__(self) -> None:
        self._reasons: set[str] = set()
        self.plain = False
        self.loaded = False
        self.torch: dict[str, Any] = {"_stance": None}
        self.default: Any = None

    def set(self, reason: str, on: bool) -> None:
        """Say that calls must be looked at more closely for a reason, or no longer."""
        (self._reasons.add if on else self._reasons.discard)(reason)
        self.plain = self.loaded and not self._reasons

    @property
    def settings_changed(self) -> bool:
        """Whether an option that changes translation may differ from its default somewhere."""
        return "settings" in self._reasons

    def look_for_torch(self) -> None:
        """Find torch's stance once its compiler is loaded; until then every call comes here, and whenever the stance is
        another object, which may say the same."""
        module = sys.modules.get(_EVAL_FRAME)
        stance = getattr(module, "_stance", None)
        if module is None or stance is None or stance is self.default:
            return
        self.torch = module.__dict__
        if getattr(stance, "stance", None) == "default" and getattr(stance, "backend", None) is None:
            self.default = stance
            self.loaded = True
            self.plain = not self._reasons


switches = Switches()
config.watch_guarded(lambda changed: switches.set("settings", changed))
