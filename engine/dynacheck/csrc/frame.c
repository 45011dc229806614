/* Running other code in a frame: in place, as a call of its own, or not at all; and its own code after all.
 *
 * The frames here were just handed to the evaluation function: no instruction has run, they are the newest on the
 * thread's data stack, nothing links to them and they have no frame object. That is what makes rewriting them sound.
 */
#include "native.h"

struct FrameCounts frame_counts;
int frame_force_fallback;

/* Sets the top of the data stack to where a frame of `code` that starts at `f` ends. Exactly there, also when it is
 * smaller: whoever pops the frame computes its end from its code. 0: there is no room. */
static int make_room(PyThreadState *ts, IFrame *f, PyCodeObject *code) {
    PyObject **end = (PyObject **)f + code_frame_size(frame_code(f));
    PyObject **need = (PyObject **)f + code_frame_size(code);
    if (UNLIKELY(frame_force_fallback) || end != ts->datastack_top) return 0;
    if (need > end) {
        if (need >= ts->datastack_limit) return 0;
        frame_counts.grown++;
    } else {
        frame_counts.in_place++;
    }
    ts->datastack_top = need;
    return 1;
}

/* A function of the entry's code that takes all argument slots positionally: same globals, builtins and closure. */
static PyObject *plain_function(IFrame *f, Entry *entry) {
    PyFunctionObject *original = (PyFunctionObject *)frame_func(f);
    PyCodeObject *code = entry_plain_code(entry);
    if (code == NULL) return NULL;
    PyFunctionObject *func = (PyFunctionObject *)PyFunction_New((PyObject *)code, original->func_globals);
    if (func == NULL) return NULL;
    Py_INCREF(original->func_builtins);
    Py_XSETREF(func->func_builtins, original->func_builtins);
    if (original->func_closure != NULL && PyFunction_SetClosure((PyObject *)func, original->func_closure) < 0)
        Py_CLEAR(func);
    return (PyObject *)func;
}

/* When the frame can't grow (the end of a chunk of the data stack, or code that needs more than a chunk): call a
 * function over the frame's argument slots, then give the frame up. It keeps the arguments alive until then. */
static PyObject *run_fallback(PyThreadState *ts, IFrame *f, Entry *entry, PyObject *captured) {
    enum { SMALL = 16 };
    PyObject *small[SMALL], **args = small, *result = NULL;
    int nargs = code_nargs(entry->code), total = nargs + (captured != NULL);
    frame_counts.fallback++;
    PyObject *func = plain_function(f, entry);
    if (func == NULL) goto done;
    if (total > SMALL && (args = PyMem_New(PyObject *, total)) == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (int i = 0; i < nargs; i++)
        args[i] = frame_local(f, i);
    if (captured != NULL) args[nargs] = captured;
    result = PyObject_Vectorcall(func, args, total, NULL);
done:
    if (args != small) PyMem_Free(args);
    Py_XDECREF(func);
    Py_XDECREF(captured);
    if (frame_discard(ts, f) < 0) Py_CLEAR(result);
    return result;
}

/* Raised by rewritten code in place of what its graph raised, with (call, after): the frame, which has changed
 * nothing yet, is to be run again as it is. That is done here, where the frame has ended, so that no traceback knows
 * of it. `after` is called with whether `call` returned, and may give another exception to raise. */
static PyObject *Rerun;

static PyObject *run_again(void) {
    PyObject *signal = exc_take(), *call, *after;
    PyException_SetTraceback(signal, Py_None);
    if (!PyArg_ParseTuple(((PyBaseExceptionObject *)signal)->args, "OO:Rerun", &call, &after)) {
        Py_DECREF(signal);
        return NULL;
    }
    PyObject *result = hook_off_call(call, NULL, 0);
    PyObject *raised = result == NULL ? exc_take() : NULL;
    PyObject *returned = result != NULL ? Py_True : Py_False;
    PyObject *instead = hook_off_call(after, &returned, 1);
    if (instead == NULL || instead != Py_None) {
        Py_CLEAR(result);
        Py_XDECREF(raised);
        if (instead != NULL) exc_restore(instead);
    } else {
        Py_DECREF(instead);
        if (raised != NULL) exc_restore(raised);
    }
    Py_DECREF(signal);
    return result;
}

PyObject *frame_run_entry(PyThreadState *ts, IFrame *f, Entry *entry, PyObject *captured) {
    PyCodeObject *code = entry->code;
    PyObject *result;
    if (!make_room(ts, f, code)) {
        Py_INCREF(entry); /* the call may remove it from its state */
        result = run_fallback(ts, f, entry, captured);
        Py_DECREF(entry);
    } else {
        frame_set_code(f, code);
        if (captured != NULL) frame_fill_local(f, code_nargs(code), captured);
        result = hook_eval_next(ts, f, 0);
    }
    if (UNLIKELY(result == NULL) && PyErr_ExceptionMatches(Rerun)) return run_again();
    return result;
}

/* ---- discarding ----------------------------------------------------------------------------------------------- */

#if DC_CALLER_CLEARS

int frame_discard(PyThreadState *ts, IFrame *f) {
    (void)ts, (void)f;
    frame_counts.discarded++;
    return 0;
}

static int discarding_init(void) {
    return 0;
}

#else

/* The evaluator alone can pop a frame, so a frame is given up by running code that only returns. It has no RESUME:
 * no events, no signals, no traceback entry. */
static PyCodeObject *stub_code;

int frame_discard(PyThreadState *ts, IFrame *f) {
    frame_counts.discarded++;
    PyObject *pending = exc_take();
    frame_drop_locals(f, frame_code(f)->co_nlocalsplus);
    frame_set_code(f, stub_code);
    ts->datastack_top = (PyObject **)f + code_frame_size(stub_code);
    PyObject *result = _PyEval_EvalFrameDefault(ts, f, 0);
    if (pending != NULL) { /* it wins over a RecursionError of the stub, which popped the frame all the same */
        Py_XDECREF(result);
        exc_restore(pending);
        return 0;
    }
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static const char stub_source[] =
    "import opcode\n"
    "def stub(): return None\n"
    "code, ops = stub.__code__, opcode.opmap\n"
    "consts = (None,)\n"
    "if 'RETURN_CONST' in ops:\n"
    "    body = bytes([ops['RETURN_CONST'], 0])\n"
    "else:\n"
    "    body = bytes([ops['LOAD_CONST'], 0, ops['RETURN_VALUE'], 0])\n"
    "code = code.replace(co_code=body, co_consts=consts, co_linetable=b'', co_exceptiontable=b'',\n"
    "                    co_name='<discarded>', co_qualname='<discarded>')\n";

static int discarding_init(void) {
    PyObject *names = PyDict_New();
    PyObject *done = names == NULL ? NULL : PyRun_String(stub_source, Py_file_input, names, names);
    PyObject *code = done == NULL ? NULL : PyDict_GetItemString(names, "code");
    stub_code = (PyCodeObject *)Py_XNewRef(code);
    Py_XDECREF(done);
    Py_XDECREF(names);
    return stub_code == NULL ? -1 : 0;
}

#endif

int frame_module_init(PyObject *module) {
    Rerun = PyErr_NewException("dynacheck._C.Rerun", PyExc_BaseException, NULL);
    if (Rerun == NULL || PyModule_AddObjectRef(module, "Rerun", Rerun) < 0) return -1;
    return discarding_init();
}
