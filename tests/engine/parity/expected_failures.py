"""Where the bundled engine doesn't agree with torch: not yet (strict: one that agrees fails), or never."""

__all__ = ["AS_TORCH", "EXPECTED_FAILURES", "ON_PURPOSE"]

# Not yet: program or case name -> why.
EXPECTED_FAILURES: dict[str, str] = {}

# Never, since torch is wrong, or gives up for good: results are plain Python's, figures not torch's.
# Program or case name -> why, and the figures wanted instead where they are settled.
ON_PURPOSE: dict[str, tuple[str, dict[str, int]]] = {
    "late_hook_child": ("a hook registered after the first call is noticed", {"graphs": 2, "recompiles": 1}),
    "six_threads": (
        "threads that call at once share one entry",
        {"graphs": 1, "recompiles": 0, "entries": 1},
    ),
    "first_in_dispatch_mode": ("a call under a mode doesn't leave the function eager for good", {}),
    "vmap_first": ("a call under vmap doesn't leave the function eager for good", {}),
    "vmap_between": ("a call under vmap doesn't leave the function eager for good", {}),
    "06_closure_state_in_local_class": ("torch loses what a closure cell was set to", {}),
    "47_hook_added_after_compile": ("a hook registered after the first call is noticed", {}),
    "50_backward_pre_hook_after_compile": ("a hook registered after the first call is noticed", {}),
    "67_enum_in_set_attribute": ("torch doesn't notice that the set changed", {}),
}

# Programs whose result depends on being compiled, as torch's does: results are torch's, not plain Python's.
AS_TORCH: dict[str, str] = {
    "28_mark_dynamic_specialized": "a mark that can't hold is an error",
    "61_ema_names_after_wrapping": "a compiled module's parameters are named with the prefix _orig_mod.",
}
