"""Where the bundled engine doesn't agree with torch: not yet (strict: one that agrees fails), or never."""

import torch

__all__ = ["AS_TORCH", "EXPECTED_FAILURES", "HERE", "LACKED", "ON_PURPOSE", "TORCH"]

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])

# Not yet: program or case name -> why.
EXPECTED_FAILURES: dict[str, str] = {
    "fullgraph_after_partial": "on purpose: a fullgraph=True call that an entry ending in a break would serve raises",
}

UNDER_MODE = (
    "a frame with a break under a torch function mode runs as it is; torch splits it, and asks the mode twice",
    {},
)
UNDER_TRANSFORM = (
    "a function that is called under a transform runs as it is; torch translates it to its first operation",
    {"graphs": 2, "recompiles": 0, "entries": 2},
)
LAZY = (
    "a lazy module's first call runs as it is, and draws its parameters' numbers as plain Python does",
    {"graphs": 1, "recompiles": 0, "entries": 1},
)

COPIED = (
    "torch carries a copy of what is left: of another type, and blind to what changes the container",
    {"graphs": 2, "entries": 3},
)

NO_EXCEPTION = (
    "torch takes it for an exception, and gives the frame up",
    {"graphs": 1, "places": frozenset(), "entries": 1},
)

# Never, since torch is wrong, or gives up for good: results are plain Python's, figures not torch's.
# Program or case name -> why, and the figures wanted instead where they are settled.
ON_PURPOSE: dict[str, tuple[str, dict[str, int]]] = {
    "late_hook_child": ("a hook registered after the first call is noticed", {"graphs": 2, "recompiles": 1}),
    "hooks_again_other_one": (
        "torch doesn't notice which hook gets keywords",
        {"graphs": 2, "recompiles": 1},
    ),
    "module_LazyClosedOver": LAZY,
    "module_LazyInsideClosedOver": LAZY,
    "six_threads": (
        "threads that call at once share one entry",
        {"graphs": 1, "recompiles": 0, "entries": 1},
    ),
    "method_of_int_through_its_class": NO_EXCEPTION,
    "method_of_bytes_through_its_class": NO_EXCEPTION,
    "object_equality_through_its_class": NO_EXCEPTION,
    "inference_mode_decorates_without_a_call": (
        "torch takes the function for a mode",
        {"graphs": 1, "entries": 1},
    ),
    "while_a_tensors_value": (
        "torch makes a frame of each turn, inside of the one before: some hundred turns exceed the recursion limit",
        {"graphs": 1, "entries": 1},
    ),
    "grad_mode_set_by_decorating": (
        "torch leaves the grad mode changed behind the frame",
        {"graphs": 1, "recompiles": 0, "entries": 1},
    ),
    "set_of_tensors_given": ("torch can't split a frame where an iterator is asked for", {"graphs": 0}),
    "fromkeys_of_a_defaultdict": (
        "torch can't rebuild it, and gives the frame up",
        {"graphs": 1, "entries": 1},
    ),
    "tensors_in_tuples_of_other_lengths": (
        "torch looks at lengths first, which tuples don't: it gives another result",
        {"graphs": 1},
    ),
    "mapping_whose_keys_are_in_the_instance": (
        "torch has no mapping there, and gives the frame up",
        {"graphs": 0},
    ),
    "iterator_carried_deque": COPIED,
    "iterator_carried_product": COPIED,
    "iterator_carried_into_a_callee": (
        "torch knows what it carries by the type it gives it; ours keeps its own, which tells a callee nothing",
        {"graphs": 3, "entries": 6},
    ),
    "raises_after_a_write": (
        "an operator that may raise in a `try` breaks where the graph has written before: torch raises past the handler",
        {"graphs": 0, "entries": 0},
    ),
    "warnings_recorded": (
        "what operators warn of inside of the block belongs in its list: it isn't entered in a trace",
        {"graphs": 0, "entries": 0},
    ),
    "walrus_in_comprehensions": (
        "torch breaks where a comprehension binds a cell of the frame around it",
        {"graphs": 1, "places": frozenset(), "entries": 1},
    ),
    "class_with_a_calling_metaclass": (
        "torch passes over a metaclass's __call__, and gives the frame up where what it stores is missing",
        {"graphs": 2, "places": frozenset(), "recompiles": 1, "entries": 2},
    ),
    "first_in_dispatch_mode": ("a call under a mode doesn't leave the function eager for good", {}),
    "batch_mode_around_a_break": UNDER_MODE,
    "mode_prints": UNDER_MODE,
    "api_custom_operator_without_a_fake": (
        "an operator without metadata propagation runs as it is; torch raises",
        {"graphs": 0, "entries": 0},
    ),
    "func_grad_prints": UNDER_TRANSFORM,
    "func_vmap_prints": UNDER_TRANSFORM,
    "func_jacfwd_prints": UNDER_TRANSFORM,
    "func_grad_of_branch": UNDER_TRANSFORM,
    "vmap_first": ("a call under vmap doesn't leave the function eager for good", {}),
    "vmap_between": ("a call under vmap doesn't leave the function eager for good", {}),
    "operation_or_nothing": (
        "a call without operations doesn't leave the function eager for good",
        {"graphs": 1, "recompiles": 0, "entries": 1},
    ),
    "38_dict_membership": (
        "a call without operations doesn't leave the function eager for good",
        {"graphs": 2, "recompiles": 1, "entries": 2},
    ),
    "06_closure_state_in_local_class": ("torch loses what a closure cell was set to", {}),
    "47_hook_added_after_compile": ("a hook registered after the first call is noticed", {}),
    "50_backward_pre_hook_after_compile": ("a hook registered after the first call is noticed", {}),
    "92_dispatch_mode_empty_reason": (
        "a call under a dispatch mode runs eagerly, not the graph made without it",
        {},
    ),
    "tensors_argument_among_known_functions": (
        "torch doesn't guard a method that it met as a constant before",
        {"graphs": 2, "recompiles": 1, "entries": 2},
    ),
    **dict.fromkeys(
        (
            "alias_objects_in_a_set",
            "alias_objects_as_keys",
            "alias_functions_in_a_set",
            "alias_objects_in_tuples",
        ),
        (
            "torch doesn't notice that two keys are one object now",
            {"graphs": 2, "recompiles": 1, "entries": 2},
        ),
    ),
    "67_enum_in_set_attribute": ("torch doesn't notice that the set changed", {}),
}

CAPTURED_WHOLE = (
    "an operator that has to be captured as a whole and can't be is an error, in words of each engine's"
)

# Programs whose result depends on being compiled, as torch's does: results are torch's, not plain Python's.
_IN_FLOAT32 = "an optimizer's bias corrections are computed in float32 tensors, eagerly in Python floats"
AS_TORCH: dict[str, str] = {
    "asked_whether_compiled": "the program does something else when it is compiled",
    "optimizer_adam": _IN_FLOAT32,
    "optimizer_adam_foreach": _IN_FLOAT32,
    "optimizer_adam_tensor_rate": _IN_FLOAT32,
    "optimizer_adamw_amsgrad": _IN_FLOAT32,
    "optimizer_nadam": _IN_FLOAT32,
    "train_adam": _IN_FLOAT32,
    "28_mark_dynamic_specialized": "a mark that can't hold is an error",
    "tensors_largest_of_a_number": "a number that is larger than a tensor comes back as a tensor",
    "cond_returns_its_input": CAPTURED_WHOLE,
    "cond_writes_to_its_input": CAPTURED_WHOLE,
    "cond_has_a_side_effect": CAPTURED_WHOLE,
    "cond_prints": CAPTURED_WHOLE,
    "autograd_second_gradient_of_a_lowered_graph": "graphs of AOTAutograd have no second gradients",
    "autograd_checkpointed_dropout": "only AOTAutograd draws the same numbers again in the backward pass",
    "61_ema_names_after_wrapping": "a compiled module's parameters are named with the prefix _orig_mod.",
}

UNREAD = "a text or number that is handed on unread is guarded"
METHODS = "the frame is given up where the argument of a built-in method breaks"
HASHES = "hash() breaks"
STALE = "torch doesn't notice that a class changed"

_OTHERWISE_IN_211 = (
    "hook_breaks_linear", "hook_breaks_before", "hook_breaks_norm", "hook_breaks_sequential", "hook_breaks_root",
    "hook_breaks_first_of_two", "hook_breaks_each", "goes_on_behind_a_call_that_searched",
    "goes_on_behind_a_call_that_merged", "goes_on_behind_a_call_that_compared", "left_before_membership",
    "left_before_keywords", "name_of_parameter_looked_into", "length_of_name_of_parameter",
    "character_in_name_of_parameter", "eval_of_a_literal", "dir_of_a_list", "copied_tuple", "copied_object",
    "deeply_copied", "method_of_a_text_enum", "members_of_an_enum", "level_made", "level_given", "level_held",
    "level_with_own_operators", "word_made", "word_given", "ratio_given", "level_shape", "in_a_weak_set",
    "hash_of_a_weak_reference", "enum_made", "enum_made_with_values", "int_enum_made", "flags_made",
    "dict_of_a_function", "dispatched_by_a_class", "torch_profiler_scope_decorates", "torch_StateDict",
    "torch_ConvertsItself", "new_of_containers", "cache_asked_for_its_hits", "sequence_slots_called_by_name",
    "namedtuple_made", "namedtuple_as_a_key", "class_by_type_with_a_function", "exception_by_type",
    "namespace_of_a_class", "method_of_a_namespace", "names_of_a_module", "local_variables",
    "local_variables_of_a_callee", "local_variables_in_a_loop", "local_variables_by_vars",
    "local_variables_as_keywords", "local_variables_written", "drawn_and_compared", "partialmethod_called",
    "tensors_hook_asks_for_strides", "tensors_methods_wait_for_arguments", "tensors_methods_wait_again",
    "tensors_bound_method_given", "tensors_addresses_compared", "tensors_address_of_the_same",
    "tensors_address_and_a_number", "tensors_address_used_behind_the_graph", "tensors_methods_of_types",
    "tensors_history_denied", "module_RegistersAHookItself",
)  # fmt: skip
"""Programs that torch 2.11 breaks in, gives up, traces or compiles again where 2.13 doesn't, or the reverse."""

# Other releases of torch than 2.13, whose rules the engine has. Results are plain Python's; figures aren't torch's
# (strict too). Program or case name -> what torch does instead.
_OTHER_TORCH: dict[tuple[int, int], dict[str, str]] = {
    (2, 11): {
        "in_a_global_texts": UNREAD,
        "in_a_global_ints": UNREAD,
        "beside_what_is_written_texts": UNREAD,
        "argument_of_a_break_texts": UNREAD,
        "asked_for_its_type_texts": UNREAD,
        "deleted_unread": "what is deleted unread isn't looked at",
        "list_method_at_a_break": METHODS,
        "dict_method_at_a_break": METHODS,
        "string_method_at_a_break": METHODS,
        "deque_method_at_a_break": METHODS,
        "set_method_at_a_break": METHODS,
        "built_in_method_of_the_caller": "a bound method of a list breaks",
        "func_jacrev": "jacrev with several arguments breaks inside of torch.func",
        "subclass_constructed": "a subclass isn't made in a graph",
        "03_class_attr_between_calls": STALE,
        "04_class_level_list_append": "appending to a list of a class breaks",
        "68_property_with_logic": STALE,
        "101_time_in_forward": "a clock's reading is compiled for again and again",
        "hash_of_an_object": HASHES,
        "hash_of_a_class": HASHES,
        "hash_of_a_method": HASHES,
        "hash_of_objects": HASHES,
        "identity_of_none": "id() of None breaks",
        "flags_listed": "iteration over a flag breaks",
        **dict.fromkeys(_OTHERWISE_IN_211, "breaks, frames given up and entries are others than 2.13's"),
    },
    (2, 14): {"random_random": "random.random() is called before the graph instead of breaking"},
}
HERE = _OTHER_TORCH.get(TORCH, {})

# Programs that a release can't run: name -> what it lacks.
LACKED = {"closure_factory_isolated": "torch.compile has no isolate_recompiles"} if TORCH < (2, 13) else {}
