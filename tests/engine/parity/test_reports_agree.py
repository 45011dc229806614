"""The reports of the two engines: the same counts, outcomes of calls and cause keys, so that baselines cross over."""

import contextlib
from pathlib import Path

import pytest
from parity.engines import Bundled, Torch, TorchSeen
from parity.expected_failures import EXPECTED_FAILURES, HERE, LACKED, ON_PURPOSE
from parity.harness import run
from parity.programs import all_cases, all_programs

from pytest_dynacheck._budgets import COUNTS
from pytest_dynacheck.engines.stock_engine import Stock

ROOT = str(Path(__file__).parents[3])
PROGRAMS = {program.name: program for program in (*all_programs(), *all_cases())}

LEFT = (
    "beside_what_is_written",
    "in_a_closure",
    "in_a_dict_that_was_there",
    "in_a_list_across_a_break",
    "in_a_list_that_was_there",
    "returned_before",
    "returned_in_a_dict",
    "returned_in_a_list",
)
# Same counts, but the engines don't hold the same value responsible. Name -> why.
_IN_ORDER = "of a dict's values torch asks tensors first, ours in the order of its keys"
_BELOW = "torch has no name for what lies below the result of a call on the stack"
_RUN = "torch runs it to see that it returns no tensor, ours never runs it"
_CONTEXT = "torch doesn't say whose `__tensor_flatten__` gave another context"
_NUMBER_OF_KEYS = "torch compares the number of keys besides the keys"
_VALUE = "torch names the function that it can't put into a graph, ours the value that the method reads"
_OF_BUILTINS = "torch calls it a method of the class `type`, ours a C function"
_STATE = "torch fails at what the function asks for first, ours names the function"
_POSITION = "torch has no name for where an iterator is"
_RAISED = "torch doesn't tell that the graph raised and its frame ran again"
OTHER_CAUSES = {
    **{f"{name}_dicts": _IN_ORDER for name in LEFT},
    **{f"{name}_method_at_a_break": _BELOW for name in ("deque", "dict", "list", "set")},
    **{
        f"result_of_{name}": _RUN
        for name in ("device_count", "get_default_device", "get_num_threads", "is_inference_mode_enabled")
    },
    **{f"print_in_a_loop_left_early{form}": _BELOW for form in ("", "_in_a_with", "_list")},
    **{f"reader_{name}": _VALUE for name in ("apply", "apply_to_input", "map", "map2")},
    **{name: _OF_BUILTINS for name in ("bytes_of_text", "table_of_letters")},
    **{name: _STATE for name in ("api_nested_made", "context_flags_of_backends")},
    "attribute_set_by_c_code": "torch calls it a method that can't be called, ours an attribute",
    **{
        f"iterator_{name}": _POSITION
        for name in ("class_counting", "given_counting", "given_over_a_range", "given_over_a_tuple")
    },
    "length_of_name_of_parameter": "torch takes it for an exception of the program",
    "numpy_float_integer": "torch names the operation whose result is a number, ours what asks for it",
    "tensors_history_denied": "torch doesn't tell that a frame that raises runs as it is",
    "wrapper_that_tells_nothing": "torch names what it does with the tensor, ours the kind of tensor",
    "method_kept": "a method of text is a C function to torch, which it skips by rule",
    "api_random_state_kept": "a method of a generator is skipped by torch's rule, and has no model here",
    "context_inference_mode_around_a_break": "the mode that is asked for is a value to torch, a call to ours",
    "module_RegistersAHookItself": "torch gives up the rest at its second break, ours splits it",
    "autograd_frozen_between": "two values differ, and torch asks the other one first",
    "wrapper_attribute": _CONTEXT,
    "wrapper_contexts": _CONTEXT,
    "raises_in_a_try": _RAISED,
    "raises_in_an_else": _RAISED,
    "tensors_hook_asks_for_strides": "torch names the function that registers the hook, ours the hook",
    "46_numpy_scalar_argument": "torch compares the dtype of the number, ours its type before",
    "train_own_optimizer": _NUMBER_OF_KEYS,
    "ten_linears": "torch holds the argument's size, ours only the weight's, which it must equal",
    "07_branch_on_object_identity": "torch compares the tensors of the two objects, ours the objects",
    "40_dict_optional_values": _NUMBER_OF_KEYS,
}
# Names are counted by place (file and line) in the table of programs, by place and reason in reports.
_OF_FILTERS = "torch breaks once more on the line, for the list of filters that it can't make anew"
_NOT_CARRIED = "torch names what breaks and what it can't carry over that, ours what breaks"
OTHER_REASONS = {
    **{
        f"iterator_carried_{name}": _NOT_CARRIED
        for name in ("chain", "children_alone", "dict", "dict_items", "enumerate", "generator")
    },
    "api_copied": "one line breaks for two reasons under torch, for one under ours",
    "api_numbers_out": "ours tells `bool(x)` from `x.item()`",
    "print_in_comprehension": "one line breaks for two reasons under ours, for one under torch",
    "warning_in_a_block": _OF_FILTERS,
    "warnings_caught_and_ignored": _OF_FILTERS,
    "warnings_ignored_in_a_callee": _OF_FILTERS,
}
TIMED = {"101_time_in_forward"}  # the clock is part of its guards
COMPARED = sorted(set(PROGRAMS) - {*EXPECTED_FAILURES, *ON_PURPOSE, *OTHER_REASONS, *HERE, *LACKED} - TIMED)
SMALL = {
    "attribute_set_by_c_code",
    "blocks_in_loop_read_index",
    "broadcast_equality",
    "dict_asked_for_a_key",
    "dict_got_a_key",
    "function_argument_varies",
    "grad_modes",
    "int_argument_counts_a_loop",
    "print_before_and_in_loop",
    "random_random",
    "same_tensor_twice",
    "set_asked_for_an_item",
    "ten_backends",
    "train_eval_dropout",
    "12_fresh_partial_argument",
    "16_item_as_scale",
    "36_train_eval_toggle",
    "78_args_kwargs_forwarding",
}


class Reported:
    """Keeps the report of a run."""

    report = None

    def cause_keys(self):
        return set(self.report.causes)

    def counts(self):
        return {name: self.report.counts[name] for name in COUNTS}

    def outcomes(self):
        return [call.outcome for call in self.report.calls]


class ReportedTorch(Reported, Torch):
    @contextlib.contextmanager
    def record(self):
        from pytest_dynacheck.engines import stock

        with Stock(ROOT).record() as self.report, stock.record(compare_values=False) as recorder:
            yield TorchSeen(recorder)


class ReportedBundled(Reported, Bundled):
    @contextlib.contextmanager
    def record(self):
        with super().record() as seen:
            self.report = seen.report
            yield seen


def test_small_and_known_programs_exist():
    assert set(COMPARED) >= SMALL - set(HERE)
    assert set(PROGRAMS) >= {*OTHER_CAUSES, *OTHER_REASONS, *TIMED}


@pytest.mark.parametrize(
    "name", [name if name in SMALL else pytest.param(name, marks=pytest.mark.slow) for name in COMPARED]
)
def test_reports_agree(name, request):
    torch, bundled = ReportedTorch(), ReportedBundled()
    run(PROGRAMS[name], torch)
    run(PROGRAMS[name], bundled)
    assert bundled.counts() == torch.counts()
    assert bundled.outcomes() == torch.outcomes()
    if name in OTHER_CAUSES:
        request.applymarker(pytest.mark.xfail(reason=OTHER_CAUSES[name], strict=True))
    assert bundled.cause_keys() == torch.cause_keys()
