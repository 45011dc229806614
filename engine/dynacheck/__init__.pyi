# What type checkers see: `__init__.py` imports each name on first use. tests/test_release.py holds the two together.

from dynacheck import (
    config as config,
)
from dynacheck import (
    errors as errors,
)
from dynacheck import (
    events as events,
)
from dynacheck import (
    reasons as reasons,
)
from dynacheck import (
    testing as testing,
)
from dynacheck.api import cache_entries as cache_entries
from dynacheck.api import compile as compile
from dynacheck.api import disable as disable
from dynacheck.api import error_on_graph_break as error_on_graph_break
from dynacheck.api import graph_break as graph_break
from dynacheck.api import is_compiling as is_compiling
from dynacheck.api import reset as reset
from dynacheck.artifacts import logs as logs
from dynacheck.backends.registry import list_backends as list_backends
from dynacheck.backends.registry import register_backend as register_backend
from dynacheck.config import configured as configured
from dynacheck.errors import BackendError as BackendError
from dynacheck.errors import ConstraintViolationError as ConstraintViolationError
from dynacheck.errors import DynacheckError as DynacheckError
from dynacheck.errors import FailOnRecompileLimitHit as FailOnRecompileLimitHit
from dynacheck.errors import InternalError as InternalError
from dynacheck.errors import InvalidBackend as InvalidBackend
from dynacheck.errors import RecompileError as RecompileError
from dynacheck.errors import UncapturedHigherOrderOpError as UncapturedHigherOrderOpError
from dynacheck.errors import Unsupported as Unsupported
from dynacheck.explanation import Explanation as Explanation
from dynacheck.explanation import explain as explain
from dynacheck.marks import allow_in_graph as allow_in_graph
from dynacheck.marks import assume_constant_result as assume_constant_result
from dynacheck.marks import disallow_in_graph as disallow_in_graph
from dynacheck.marks import forbid_in_graph as forbid_in_graph
from dynacheck.marks import mark_dynamic as mark_dynamic
from dynacheck.marks import mark_static as mark_static
from dynacheck.marks import mark_unbacked as mark_unbacked
from dynacheck.marks import maybe_mark_dynamic as maybe_mark_dynamic
from dynacheck.marks import nonstrict_trace as nonstrict_trace
from dynacheck.marks import substitute_in_graph as substitute_in_graph
from dynacheck.report import Report as Report
from dynacheck.report import observe as observe
from dynacheck.runtime.stance import set_stance as set_stance
