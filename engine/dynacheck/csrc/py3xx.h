/* Facts about CPython versions: how an interpreter frame is laid out and who clears it.
 *
 * This is the only file that includes CPython's internal headers. Everything else uses the names below, all of which
 * speak of a frame that an evaluation function was just handed and that has not run a single instruction.
 */
#ifndef DYNACHECK_PY3XX_H
#define DYNACHECK_PY3XX_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
#error "dynacheck supports CPython 3.11 to 3.14: frames of this version have an unknown layout"
#endif
#ifdef Py_GIL_DISABLED
#error "dynacheck does not support free-threaded builds of CPython"
#endif

#include <stdbool.h>
#include <stdint.h>
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe.h"
#include "internal/pycore_code.h"
#include "internal/pycore_stackref.h"
#else
#include "internal/pycore_frame.h"
#include "internal/pycore_code.h"
#endif
#undef Py_BUILD_CORE

#define DC_PY311 (PY_VERSION_HEX < 0x030C0000)
#define DC_PY313_UP (PY_VERSION_HEX >= 0x030D0000)
#define DC_PY314_UP (PY_VERSION_HEX >= 0x030E0000)

typedef _PyInterpreterFrame IFrame;

/* On 3.11 whoever called the evaluator clears the frame afterwards; later the evaluator itself does. */
#define DC_CALLER_CLEARS DC_PY311

#if DC_PY311
#define DC_CODE_GET_EXTRA _PyCode_GetExtra
#define DC_CODE_SET_EXTRA _PyCode_SetExtra
#define DC_REQUEST_EXTRA _PyEval_RequestCodeExtraIndex
#else
#define DC_CODE_GET_EXTRA PyUnstable_Code_GetExtra
#define DC_CODE_SET_EXTRA PyUnstable_Code_SetExtra
#define DC_REQUEST_EXTRA PyUnstable_Eval_RequestCodeExtraIndex
#endif

/* The code, the function and argument slot i, all borrowed. */
static inline PyCodeObject *frame_code(const IFrame *f) {
#if DC_PY314_UP
    return (PyCodeObject *)PyStackRef_AsPyObjectBorrow(f->f_executable);
#elif DC_PY313_UP
    return (PyCodeObject *)f->f_executable;
#else
    return f->f_code;
#endif
}

static inline PyObject *frame_func(const IFrame *f) {
#if DC_PY314_UP
    return PyStackRef_AsPyObjectBorrow(f->f_funcobj);
#elif DC_PY311
    return (PyObject *)f->f_func;
#else
    return f->f_funcobj;
#endif
}

static inline PyObject *frame_local(const IFrame *f, int i) {
#if DC_PY314_UP
    return PyStackRef_IsNull(f->localsplus[i]) ? NULL : PyStackRef_AsPyObjectBorrow(f->localsplus[i]);
#else
    return f->localsplus[i];
#endif
}

/* Steals value; the slot must be empty. */
static inline void frame_fill_local(IFrame *f, int i, PyObject *value) {
#if DC_PY314_UP
    f->localsplus[i] = PyStackRef_FromPyObjectSteal(value);
#else
    f->localsplus[i] = value;
#endif
}

static inline void frame_drop_locals(IFrame *f, int n) {
    for (int i = 0; i < n; i++) {
#if DC_PY314_UP
        _PyStackRef old = f->localsplus[i];
        f->localsplus[i] = PyStackRef_NULL;
        PyStackRef_XCLOSE(old);
#else
        Py_CLEAR(f->localsplus[i]);
#endif
    }
}

/* Words of the thread's data stack that a frame of this code takes. */
static inline Py_ssize_t code_frame_size(const PyCodeObject *code) {
#if DC_PY311
    return (Py_ssize_t)code->co_nlocalsplus + code->co_stacksize + (Py_ssize_t)FRAME_SPECIALS_SIZE;
#else
    return code->co_framesize;
#endif
}

static inline int code_nargs(const PyCodeObject *code) {
    return code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) +
           ((code->co_flags & CO_VARKEYWORDS) != 0);
}

/* Points the frame at other code. Slots of `code` beyond those of the old one become empty; the caller has checked
 * that there is room for them and set the top of the data stack. */
static inline void frame_set_code(IFrame *f, PyCodeObject *code) {
    PyCodeObject *old = frame_code(f);
    int nlocals = code->co_nlocalsplus;
#if DC_PY314_UP
    _PyStackRef old_ref = f->f_executable;
    for (int i = old->co_nlocalsplus; i < nlocals; i++)
        f->localsplus[i] = PyStackRef_NULL;
    f->f_executable = PyStackRef_FromPyObjectNew((PyObject *)code);
    f->instr_ptr = _PyCode_CODE(code);
    f->stackpointer = f->localsplus + nlocals;
    PyStackRef_CLOSE(old_ref);
#else
    for (int i = old->co_nlocalsplus; i < nlocals; i++)
        f->localsplus[i] = NULL;
    f->stacktop = nlocals;
    Py_INCREF(code);
#if DC_PY313_UP
    f->f_executable = (PyObject *)code;
    f->instr_ptr = _PyCode_CODE(code);
#else
    f->f_code = code;
    f->prev_instr = _PyCode_CODE(code) - 1;
#endif
    Py_DECREF(old);
#endif
}

/* The pending exception, taken away and put back. */
static inline PyObject *exc_take(void) {
#if DC_PY311
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL) return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
        Py_DECREF(traceback);
    }
    Py_DECREF(type);
    return value;
#else
    return PyErr_GetRaisedException();
#endif
}

static inline void exc_restore(PyObject *exc) /* steals; NULL: nothing is pending afterwards */
{
#if DC_PY311
    if (exc == NULL) {
        PyErr_Clear();
        return;
    }
    PyErr_Restore(Py_NewRef(Py_TYPE(exc)), exc, PyException_GetTraceback(exc));
#else
    PyErr_SetRaisedException(exc);
#endif
}

#endif
