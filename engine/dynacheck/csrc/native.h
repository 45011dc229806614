/* What the parts of the native module know of each other. */
#ifndef DYNACHECK_NATIVE_H
#define DYNACHECK_NATIVE_H

#include "py3xx.h"

#define DYNACHECK_ABI 1
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The object that stands for an empty slot or cell where a tuple must hold something (`_C.NULL`); immortal. */
extern PyObject *const dynacheck_null;

/* ---- guards.c ------------------------------------------------------------------------------------------------- */

/* What a guard program looks at: the argument slots of a frame that has not started, or of a tuple, and the function
 * (globals, builtins, closure, defaults). Arguments that become cells are not cells yet. */
typedef struct {
    const IFrame *frame;    /* NULL: `args` instead */
    PyObject *const *args;  /* one per argument slot, in slot order; dynacheck_null stands for an empty one */
    PyFunctionObject *func;
} GuardFrame;

/* Argument slot i: borrowed; NULL when empty. The caller knows that the code has that many. */
static inline PyObject *gf_local(const GuardFrame *gf, int i)
{
    if (gf->frame != NULL) {
        return frame_local(gf->frame, i);
    }
    PyObject *value = gf->args[i];
    return value == dynacheck_null ? NULL : value;
}

extern PyTypeObject GuardProgram_Type;

/* 1 pass, 0 fail, -1 error: an exception is set, which is the engine's fault and never means "fail". A program that
 * captures stores a new tuple in *captured when it passes and `captured` isn't NULL. May run Python code. */
int guard_program_check(PyObject *program, const GuardFrame *gf, PyObject **captured);
int guard_program_captures(PyObject *program);
/* 0 once an object that the program holds weakly has died. */
int guard_program_alive(PyObject *program);
/* Has fn(arg) called, once, when that happens. One listener per program: -1 with ValueError when there is one. NULL
 * takes the listener away and can't fail. fn may drop the last reference to the program. */
int guard_program_on_death(PyObject *program, void (*fn)(void *), void *arg);
/* Testing switches: 1 when `name` is one of guards.c, 0 when it is not known there, -1 error. */
int guards_force(const char *name, int value);
int guards_module_init(PyObject *module);

#endif
