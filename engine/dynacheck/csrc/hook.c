/* The frame evaluation function (PEP 523), its installation and the per-thread modes.
 *
 * A thread's mode, callback and region are set for an extent: a HookedCall or HookOff, a run of the callback, a frame
 * marked skip_recursive. Whatever is changed inside an extent ends with it. Saved values are moved to the C stack, by
 * value, so that code that switches C stacks can mix modes up but not leave dangling pointers.
 */
#include "native.h"
#include <structmember.h>

enum { MODE_OFF, MODE_RUN, MODE_ON };

typedef struct {
    int mode;
    int whole;          /* entries whose code splits the frame don't serve */
    PyObject *callback; /* owned; a callable when ON, False when RUN, NULL when OFF */
    Region *region;     /* owned; NULL: none */
} Mode;

/* Owned by a capsule in the thread state's dictionary: a thread that ends with the hook on gives it back. */
typedef struct {
    Mode now;
    long long hits, misses;
    int users; /* how many modes of this thread, current and saved, are not OFF */
} Thread;

static __thread struct {
    Thread *thread;  /* NULL until the thread sets a mode */
    IFrame *passing; /* the frame that was just handed to the earlier evaluator: breaks cycles */
    int probing, probe_seen;
} tls __attribute__((tls_model("initial-exec")));

static _PyFrameEvalFunction earlier; /* the evaluator below ours; NULL: the default one */
static int installed;                /* ours was set and nothing is known to have removed it */
static int users;                    /* sum over all threads */
static PyObject *probe;              /* a function that does nothing */
static PyObject *hit_observer;       /* NULL: nobody watches */

static const char thread_key[] = "dynacheck._C.thread";

static PyObject *hook_eval(PyThreadState *ts, IFrame *f, int throwflag);

/* ---- installation ---------------------------------------------------------------------------------------------- */

static inline _PyFrameEvalFunction evaluator(void) {
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Main());
}

static void set_evaluator(_PyFrameEvalFunction fn) {
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Main(), fn != NULL ? fn : _PyEval_EvalFrameDefault);
}

/* Whether the evaluator on top of ours still hands frames down to us. */
static int reached_from_top(void) {
    PyObject *pending = exc_take();
    tls.probe_seen = 0;
    tls.probing = 1;
    PyObject *result = PyObject_CallNoArgs(probe);
    tls.probing = 0;
    Py_XDECREF(result);
    exc_restore(pending); /* drops an error of the probe: going on top is right whenever it wasn't seen */
    return tls.probe_seen;
}

/* When the evaluator below ours is on top as well, having been set again, nothing is known to be below ours. */
static void cut_cycle(void) {
    if (evaluator() == earlier) earlier = NULL;
}

static void ensure_installed(void) {
    _PyFrameEvalFunction top = evaluator();
    if (top == hook_eval) {
        installed = 1;
        return;
    }
    if (installed && top != _PyEval_EvalFrameDefault) {
        if (reached_from_top()) return;
        top = evaluator();
    }
    if (top != hook_eval) {
        earlier = top == _PyEval_EvalFrameDefault ? NULL : top;
        set_evaluator(hook_eval);
    }
    installed = 1;
}

/* Leaves when we are on top. When buried under another evaluator we stay and pass frames on until found on top. */
static void uninstall(void) {
    _PyFrameEvalFunction top = evaluator();
    if (top == hook_eval) {
        set_evaluator(earlier);
    } else if (top != _PyEval_EvalFrameDefault) {
        cut_cycle();
        return;
    }
    installed = 0;
    earlier = NULL;
}

/* ---- modes ----------------------------------------------------------------------------------------------------- */

static void count_users(Thread *t, int change) {
    t->users += change;
    users += change;
    if (users == 0 && change < 0 && installed) uninstall();
}

static void thread_free(PyObject *capsule) {
    Thread *t = PyCapsule_GetPointer(capsule, thread_key);
    if (t == NULL) return;
    if (tls.thread == t) tls.thread = NULL;
    Mode last = t->now;
    count_users(t, -t->users);
    PyMem_Free(t);
    Py_XDECREF(last.callback);
    Py_XDECREF(last.region);
}

static Thread *thread_here(void) {
    if (tls.thread != NULL) return tls.thread;
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_RuntimeError, "the frame hook works in the main interpreter only");
        return NULL;
    }
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    if (dict == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this thread is ending");
        return NULL;
    }
    Thread *t = PyMem_Calloc(1, sizeof *t);
    if (t == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(t, thread_key, thread_free);
    if (capsule == NULL) {
        PyMem_Free(t);
        return NULL;
    }
    int stored = PyDict_SetItemString(dict, thread_key, capsule);
    Py_DECREF(capsule);
    if (stored < 0) return NULL;
    tls.thread = t;
    return t;
}

/* Begins an extent: `saved` takes what was set. */
static inline void mode_enter(Thread *t, Mode *saved, int mode, PyObject *callback, Region *region) {
    *saved = t->now;
    t->now = (Mode){mode, 0, Py_XNewRef(callback), (Region *)Py_XNewRef((PyObject *)region)};
    if (mode != MODE_OFF) {
        count_users(t, 1);
        if (UNLIKELY(evaluator() != hook_eval)) ensure_installed();
    }
}

/* Ends it. A pending exception stays. */
static inline void mode_leave(Thread *t, Mode *saved) {
    Mode ended = t->now;
    t->now = *saved;
    if (ended.mode != MODE_OFF) count_users(t, -1);
    if (t->now.mode != MODE_OFF && UNLIKELY(evaluator() != hook_eval)) ensure_installed();
    Py_XDECREF(ended.callback);
    Py_XDECREF(ended.region);
}

/* ---- evaluation ------------------------------------------------------------------------------------------------ */

PyObject *hook_eval_next(PyThreadState *ts, IFrame *f, int throwflag) {
    _PyFrameEvalFunction next = earlier;
    if (next == NULL) return _PyEval_EvalFrameDefault(ts, f, throwflag);
    IFrame *outer = tls.passing;
    tls.passing = f;
    PyObject *result = next(ts, f, throwflag);
    tls.passing = outer;
    return result;
}

static PyObject *eval_with_hook_off(PyThreadState *ts, IFrame *f, Thread *t) {
    Mode saved;
    mode_enter(t, &saved, MODE_OFF, NULL, NULL);
    PyObject *result = hook_eval_next(ts, f, 0);
    mode_leave(t, &saved);
    return result;
}

/* Existing entries only, for the frame's callees too. */
static PyObject *eval_run_only(PyThreadState *ts, IFrame *f, Thread *t) {
    Mode saved;
    mode_enter(t, &saved, MODE_RUN, Py_False, t->now.region);
    t->now.whole = saved.whole;
    PyObject *result = hook_eval_next(ts, f, 0);
    mode_leave(t, &saved);
    return result;
}

/* 1 and the entry (a new reference) that serves the frame; 0; -1. */
static int find_entry(CodeState *s, IFrame *f, Thread *t, Entry **found, PyObject **captured) {
    GuardFrame view = {.frame = f, .func = (PyFunctionObject *)frame_func(f)};
    PyObject *entries = Py_NewRef(s->entries); /* a guard may run Python code, which may change the state */
    int verdict = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries); i++) {
        Entry *e = (Entry *)PyTuple_GET_ITEM(entries, i);
        if (e->region != t->now.region || !e->alive || (e->splits && t->now.whole)) continue;
        verdict = e->program == NULL ? 1 : guard_program_check(e->program, &view, captured);
        if (verdict > 0) {
            code_state_hit(s, e, i);
            *found = (Entry *)Py_NewRef((PyObject *)e);
        }
        if (verdict != 0) break;
    }
    Py_DECREF(entries);
    return verdict;
}

PyObject *hook_off_call(PyObject *fn, PyObject *const *args, Py_ssize_t nargs) {
    Thread *t = tls.thread;
    PyObject *result;
    Py_INCREF(fn); /* what it is called for may let go of it */
    if (t == NULL || t->now.mode == MODE_OFF) {
        result = PyObject_Vectorcall(fn, args, nargs, NULL);
    } else {
        Mode saved;
        mode_enter(t, &saved, MODE_OFF, NULL, NULL);
        result = PyObject_Vectorcall(fn, args, nargs, NULL);
        mode_leave(t, &saved);
    }
    Py_DECREF(fn);
    return result;
}

PyObject *hook_off_check(PyObject *guard, PyObject *slots) {
    PyObject *check = PyObject_GetAttrString(guard, "check");
    PyObject *verdict = check == NULL ? NULL : hook_off_call(check, &slots, 1);
    Py_XDECREF(check);
    return verdict;
}

static PyObject *run_hit(PyThreadState *ts, IFrame *f, Thread *t, Entry *e, PyObject *captured) {
    PyObject *result = NULL;
    t->hits++;
    if (UNLIKELY(hit_observer != NULL)) {
        PyObject *args[] = {(PyObject *)e, frame_func(f)};
        PyObject *told = hook_off_call(hit_observer, args, 2);
        if (told == NULL) {
            Py_XDECREF(captured);
            frame_discard(ts, f);
            goto done;
        }
        Py_DECREF(told);
    }
    result = frame_run_entry(ts, f, e, captured);
done:
    Py_DECREF(e);
    return result;
}

/* The values of the argument slots, with dynacheck_null for an empty one. */
static PyObject *frame_args(IFrame *f, PyCodeObject *code) {
    int n = code_nargs(code);
    PyObject *args = PyTuple_New(n);
    for (int i = 0; args != NULL && i < n; i++) {
        PyObject *value = frame_local(f, i);
        PyTuple_SET_ITEM(args, i, Py_NewRef(value != NULL ? value : dynacheck_null));
    }
    return args;
}

/* What the callback chose for the frame: 1 and an entry, 0: run it as it is, 2: it and all below it with existing
 * entries only, -1. */
static int ask_callback(IFrame *f, PyCodeObject *code, Thread *t, CodeState *s, Entry **chosen, PyObject **captured) {
    PyObject *args = frame_args(f, code), *func = frame_func(f);
    if (args == NULL) return -1;
    PyObject *call[] = {func, args, (PyObject *)s};
    PyObject *answer = hook_off_call(t->now.callback, call, 3);
    Py_DECREF(args);
    if (answer == NULL || answer == Py_None || answer == Py_False) {
        Py_XDECREF(answer);
        return answer == NULL ? -1 : answer == Py_False ? 2 : 0;
    }
    if (!Py_IS_TYPE(answer, &Entry_Type)) {
        PyErr_Format(PyExc_TypeError, "the frame callback must return an Entry, None or False, not %.200s",
                     Py_TYPE(answer)->tp_name);
        Py_DECREF(answer);
        return -1;
    }
    Entry *e = (Entry *)answer;
    int verdict = code_state_add(s, e) < 0 ? -1 : 1;
    if (verdict > 0 && e->captures) {
        GuardFrame view = {.frame = f, .func = (PyFunctionObject *)func};
        verdict = guard_program_check(e->program, &view, captured);
        if (verdict == 0) {
            PyErr_SetString(PyExc_RuntimeError, "the guards of a new entry fail for the frame that it was made for");
            verdict = -1;
        }
    }
    if (verdict < 0) {
        Py_DECREF(answer);
        return -1;
    }
    *chosen = e;
    return 1;
}

static PyObject *eval_miss(PyThreadState *ts, IFrame *f, PyCodeObject *code, Thread *t, CodeState *s) {
    Entry *e = NULL;
    PyObject *captured = NULL, *result;
    if (s == NULL && (s = code_state(code)) == NULL) {
        frame_discard(ts, f);
        return NULL;
    }
    Py_INCREF(s);
    s->misses++;
    t->misses++;
    int verdict = ask_callback(f, code, t, s, &e, &captured);
    if (verdict < 0) {
        frame_discard(ts, f);
        result = NULL;
    } else if (verdict == 2) {
        result = eval_run_only(ts, f, t);
    } else if (verdict > 0) {
        result = frame_run_entry(ts, f, e, captured);
        Py_DECREF(e);
    } else if (s->skip_recursive) {
        result = eval_with_hook_off(ts, f, t);
    } else {
        result = hook_eval_next(ts, f, 0);
    }
    Py_DECREF(s);
    return result;
}

static PyObject *eval_function(PyThreadState *ts, IFrame *f, PyCodeObject *code, Thread *t) {
    CodeState *s = code_state_peek(code);
    int run_only = t->now.mode == MODE_RUN;
    if (s != NULL) {
        if (s->skip_recursive) return eval_with_hook_off(ts, f, t);
        if (s->skip || s->plain) return hook_eval_next(ts, f, 0);
        if (PyTuple_GET_SIZE(s->entries) != 0) {
            Entry *e = NULL;
            PyObject *captured = NULL;
            int found = find_entry(s, f, t, &e, &captured);
            if (found > 0) return run_hit(ts, f, t, e, captured);
            if (found < 0) { /* the engine's fault: never taken for a miss */
                frame_discard(ts, f);
                return NULL;
            }
        }
        run_only |= s->run_only;
    }
    if (!run_only) return eval_miss(ts, f, code, t, s);
    if (s != NULL) {
        s->misses++;
        t->misses++;
    }
    return hook_eval_next(ts, f, 0);
}

static PyObject *eval_off(PyThreadState *ts, IFrame *f, int throwflag) {
    if (users == 0 && evaluator() == hook_eval) { /* put back by another evaluator after we had left */
        _PyFrameEvalFunction next = earlier;
        uninstall();
        return (next != NULL ? next : _PyEval_EvalFrameDefault)(ts, f, throwflag);
    }
    return hook_eval_next(ts, f, throwflag);
}

static PyObject *hook_eval(PyThreadState *ts, IFrame *f, int throwflag) {
    const int not_ours = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    Thread *t = tls.thread;
    if (UNLIKELY(tls.passing == f)) {
        cut_cycle();
        return _PyEval_EvalFrameDefault(ts, f, throwflag);
    }
    if (UNLIKELY(tls.probing) && frame_func(f) == probe) {
        tls.probe_seen = 1;
        return hook_eval_next(ts, f, throwflag);
    }
    if (t == NULL || t->now.mode == MODE_OFF) return eval_off(ts, f, throwflag);
    PyCodeObject *code = frame_code(f);
    if (throwflag || f->owner != FRAME_OWNED_BY_THREAD || (code->co_flags & not_ours) ||
        !(code->co_flags & CO_OPTIMIZED)) {
        return hook_eval_next(ts, f, throwflag);
    }
    return eval_function(ts, f, code, t);
}

/* ---- HookedCall and HookOff ------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *fn, *callback;
    Region *region; /* strong: a wrapper keeps its region alive */
    int mode, whole;
    PyObject *dict, *weakrefs;
} Wrapper;

static PyTypeObject HookedCall_Type, HookOff_Type;

static PyObject *wrapper_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Wrapper *w = (Wrapper *)self;
    Thread *t = tls.thread;
    if (w->mode == MODE_OFF && (t == NULL || t->now.mode == MODE_OFF))
        return PyObject_Vectorcall(w->fn, args, nargsf, kwnames);
    if (t == NULL && (t = thread_here()) == NULL) return NULL;
    Mode saved;
    mode_enter(t, &saved, w->mode, w->callback, w->region);
    t->now.whole = w->whole;
    PyObject *result = PyObject_Vectorcall(w->fn, args, nargsf, kwnames);
    mode_leave(t, &saved);
    return result;
}

static PyObject *wrapper_make(PyTypeObject *type, PyObject *fn, PyObject *callback, PyObject *region, int mode) {
    if (!PyCallable_Check(fn)) return PyErr_Format(PyExc_TypeError, "%s needs a callable", type->tp_name);
    Wrapper *w = (Wrapper *)type->tp_alloc(type, 0);
    if (w == NULL) return NULL;
    w->vectorcall = wrapper_vectorcall;
    w->fn = Py_NewRef(fn);
    w->callback = mode == MODE_OFF ? NULL : Py_NewRef(callback);
    w->region = mode == MODE_OFF || region == Py_None ? NULL : (Region *)Py_NewRef(region);
    w->mode = mode;
    return (PyObject *)w;
}

/* The mode that a callback argument asks for; -1. */
static int mode_of(PyObject *callback, PyObject *region) {
    if (region != Py_None && !Py_IS_TYPE(region, &Region_Type)) {
        PyErr_SetString(PyExc_TypeError, "region must be a Region or None");
        return -1;
    }
    if (callback == Py_None) return MODE_OFF;
    if (callback == Py_False) return MODE_RUN;
    if (!PyCallable_Check(callback)) {
        PyErr_SetString(PyExc_TypeError,
                        "the callback must be callable, False (existing entries only) or None (off)");
        return -1;
    }
    return MODE_ON;
}

static PyObject *hooked_call_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"fn", "callback", "region", "run_only", "whole", NULL};
    PyObject *fn, *callback, *region = Py_None;
    int run_only = 0, whole = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|Opp:HookedCall", names, &fn, &callback, &region, &run_only,
                                     &whole))
        return NULL;
    if (run_only && (callback == Py_None || PyCallable_Check(callback))) callback = Py_False;
    int mode = mode_of(callback, region);
    PyObject *made = mode < 0 ? NULL : wrapper_make(type, fn, callback, region, mode);
    if (made != NULL) ((Wrapper *)made)->whole = whole;
    return made;
}

static PyObject *hook_off_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"fn", NULL};
    PyObject *fn;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:HookOff", names, &fn)) return NULL;
    return wrapper_make(type, fn, Py_None, Py_None, MODE_OFF);
}

static int wrapper_traverse(Wrapper *w, visitproc visit, void *arg) {
    Py_VISIT(w->fn);
    Py_VISIT(w->callback);
    Py_VISIT(w->region);
    Py_VISIT(w->dict);
    return 0;
}

static int wrapper_clear(Wrapper *w) {
    Py_CLEAR(w->fn);
    Py_CLEAR(w->callback);
    Py_CLEAR(w->region);
    Py_CLEAR(w->dict);
    return 0;
}

static void wrapper_dealloc(Wrapper *w) {
    PyObject_GC_UnTrack(w);
    if (w->weakrefs != NULL) PyObject_ClearWeakRefs((PyObject *)w);
    wrapper_clear(w);
    Py_TYPE(w)->tp_free(w);
}

/* In a class they bind like the function they wrap. */
static PyObject *wrapper_get(PyObject *self, PyObject *obj, PyObject *type) {
    (void)type;
    return obj == NULL || obj == Py_None ? Py_NewRef(self) : PyMethod_New(self, obj);
}

/* Copied and pickled as functions are: by name. */
static PyObject *wrapper_reduce(Wrapper *w, PyObject *unused) {
    (void)unused;
    return PyObject_GetAttrString(w->fn, "__qualname__");
}

static PyMethodDef wrapper_methods[] = {
    {"__reduce__", (PyCFunction)wrapper_reduce, METH_NOARGS, "The name of the function."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef wrapper_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Wrapper, fn), READONLY, "What is called."},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef wrapper_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* clang-format off */
#define WRAPPER_TYPE(name, new)                                                                                      \
    {                                                                                                                \
        PyVarObject_HEAD_INIT(NULL, 0)                                                                               \
        .tp_name = name, .tp_basicsize = sizeof(Wrapper),                                                            \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, \
        .tp_new = new, .tp_dealloc = (destructor)wrapper_dealloc,                                                    \
        .tp_traverse = (traverseproc)wrapper_traverse, .tp_clear = (inquiry)wrapper_clear,                           \
        .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Wrapper, vectorcall),                         \
        .tp_descr_get = wrapper_get, .tp_members = wrapper_members, .tp_getset = wrapper_getset,                     \
        .tp_methods = wrapper_methods,                                                                               \
        .tp_dictoffset = offsetof(Wrapper, dict), .tp_weaklistoffset = offsetof(Wrapper, weakrefs),                  \
    }
/* clang-format on */

static PyTypeObject HookedCall_Type = WRAPPER_TYPE("dynacheck._C.HookedCall", hooked_call_new);
static PyTypeObject HookOff_Type = WRAPPER_TYPE("dynacheck._C.HookOff", hook_off_new);

/* ---- functions ------------------------------------------------------------------------------------------------- */

static PyObject *py_set_callback(PyObject *module, PyObject *args, PyObject *kwargs) {
    (void)module;
    static char *names[] = {"callback", "region", NULL};
    PyObject *callback, *region = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:set_callback", names, &callback, &region)) return NULL;
    int mode = mode_of(callback, region);
    Thread *t = mode < 0 ? NULL : thread_here();
    if (t == NULL) return NULL;
    Mode was;
    PyObject *previous = PyTuple_New(2);
    if (previous == NULL) return NULL;
    mode_enter(t, &was, mode, mode == MODE_OFF ? NULL : callback, region == Py_None ? NULL : (Region *)region);
    if (was.mode != MODE_OFF) count_users(t, -1);
    PyTuple_SET_ITEM(previous, 0, was.callback != NULL ? was.callback : Py_NewRef(Py_None));
    PyTuple_SET_ITEM(previous, 1, was.region != NULL ? (PyObject *)was.region : Py_NewRef(Py_None));
    return previous;
}

static PyObject *py_current_region(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *region = tls.thread == NULL ? NULL : (PyObject *)tls.thread->now.region;
    return Py_NewRef(region != NULL ? region : Py_None);
}

static PyObject *py_hook_active(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(tls.thread != NULL && tls.thread->now.mode != MODE_OFF);
}

static PyObject *py_thread_counts(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    Thread *t = tls.thread;
    return Py_BuildValue("(LL)", t == NULL ? 0LL : t->hits, t == NULL ? 0LL : t->misses);
}

static PyObject *py_set_hot_list(PyObject *module, PyObject *fn) {
    (void)module;
    if (fn != Py_None && !PyCallable_Check(fn)) {
        PyErr_SetString(PyExc_TypeError, "set_hot_list takes a callable or None");
        return NULL;
    }
    Py_XSETREF(hit_observer, fn == Py_None ? NULL : Py_NewRef(fn));
    Py_RETURN_NONE;
}

static PyObject *py_hook_stats(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    _PyFrameEvalFunction top = evaluator();
    return Py_BuildValue("{s:s,s:i,s:N,s:L,s:L,s:L,s:L}", "evaluator",
                         top == hook_eval                  ? "hook"
                         : top == _PyEval_EvalFrameDefault ? "default"
                                                           : "other",
                         "users", users, "installed", PyBool_FromLong(installed), "in_place", frame_counts.in_place,
                         "grown", frame_counts.grown, "fallback", frame_counts.fallback, "discarded",
                         frame_counts.discarded);
}

static PyMethodDef methods[] = {
    {"set_callback", (PyCFunction)(void (*)(void))py_set_callback, METH_VARARGS | METH_KEYWORDS,
     "Set this thread's mode and region; returns the previous (callback, region)."},
    {"current_region", py_current_region, METH_NOARGS, "The compile region that is current on this thread."},
    {"hook_active", py_hook_active, METH_NOARGS, "Whether the hook looks at frames of this thread, now."},
    {"thread_counts", py_thread_counts, METH_NOARGS, "(hits, misses) of this thread since it started."},
    {"set_hot_list", py_set_hot_list, METH_O, "Have fn(entry, func) called on every hit; None: nothing."},
    {"hook_stats", py_hook_stats, METH_NOARGS, "Which evaluator is set, how many use ours, how frames were run."},
    {NULL, NULL, 0, NULL},
};

int hook_module_init(PyObject *module) {
    PyObject *names = PyDict_New();
    PyObject *done = names == NULL ? NULL : PyRun_String("def probe(): pass\n", Py_file_input, names, names);
    probe = done == NULL ? NULL : Py_XNewRef(PyDict_GetItemString(names, "probe"));
    Py_XDECREF(done);
    Py_XDECREF(names);
    if (probe == NULL || PyModule_AddType(module, &HookedCall_Type) < 0 ||
        PyModule_AddType(module, &HookOff_Type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
