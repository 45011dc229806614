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
    const IFrame *frame;   /* NULL: `args` instead */
    PyObject *const *args; /* one per argument slot, in slot order; dynacheck_null stands for an empty one */
    PyFunctionObject *func;
} GuardFrame;

/* Argument slot i: borrowed; NULL when empty. The caller knows that the code has that many. */
static inline PyObject *gf_local(const GuardFrame *gf, int i) {
    if (gf->frame != NULL) return frame_local(gf->frame, i);
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

/* ---- entries.c: what hangs on a code object -------------------------------------------------------------------- */

struct Entry;

typedef struct {
    PyObject_HEAD PyObject *key;
    PyObject *weakrefs;
    struct Entry *first; /* entries of this region, borrowed: they take themselves off when they die */
} Region;

struct CodeState;

/* One guarded piece of rewritten code. */
typedef struct Entry {
    PyObject_HEAD PyObject *program; /* GuardProgram, or NULL: always passes */
    PyCodeObject *code;
    PyCodeObject *plain; /* `code` with every argument slot positional; made when the fallback first needs it */
    PyObject *owner, *on_death; /* may be NULL */
    Region *region;             /* weak: its death sets NULL here, and ends the entry */
    struct Entry *region_prev, *region_next;
    struct CodeState *state; /* borrowed; NULL while in none */
    long long hits;
    char captures, alive;
    char splits; /* its code ends in a graph break: not for callers that want the whole frame in one graph */
} Entry;

/* Belongs to a code object through its extra slot and dies with it, unless Python still holds it. */
typedef struct CodeState {
    PyObject_HEAD PyCodeObject *code; /* borrowed; NULL once it is gone */
    PyObject *entries;                /* a tuple, never changed, only replaced: who walks it keeps a reference */
    Entry *last_hit;                  /* to compare with only: may be gone */
    PyObject *data;
    struct CodeState *prev, *next; /* all states with a code */
    long long hits, misses;
    char skip, skip_recursive, run_only;
    char plain; /* code made for the fallback: its frames are evaluated as they are */
} CodeState;

extern PyTypeObject Region_Type, Entry_Type, CodeState_Type;
extern Py_ssize_t dynacheck_extra; /* index of our slot on code objects */

/* Borrowed, or NULL when the code has none. */
static inline CodeState *code_state_peek(PyCodeObject *code) {
    void *state = NULL;
    DC_CODE_GET_EXTRA((PyObject *)code, dynacheck_extra, &state); /* fails for non-code only */
    return state;
}

CodeState *code_state(PyCodeObject *code);          /* borrowed, made on first need; NULL: error */
int code_state_add(CodeState *state, Entry *entry); /* in front; nothing to do when it is there */
void code_state_hit(CodeState *state, Entry *entry, Py_ssize_t index);
PyCodeObject *entry_plain_code(Entry *entry); /* borrowed; NULL: error */
int entries_module_init(PyObject *module);

/* ---- frame.c: running other code in a frame -------------------------------------------------------------------- */

extern struct FrameCounts {
    long long in_place, grown, fallback, discarded;
} frame_counts;
extern int frame_force_fallback; /* testing switch */

/* Evaluate the frame with the entry's code. Steals `captured` (NULL unless the entry captures). */
PyObject *frame_run_entry(PyThreadState *ts, IFrame *f, Entry *entry, PyObject *captured);
/* Give up a frame that is not going to run, keeping a pending exception. -1: there was none and now there is one. */
int frame_discard(PyThreadState *ts, IFrame *f);
int frame_module_init(PyObject *module);

/* ---- hook.c -----------------------------------------------------------------------------------------------------
 */

/* Evaluate the frame as the evaluator that was set before ours does. */
PyObject *hook_eval_next(PyThreadState *ts, IFrame *f, int throwflag);
/* fn(*args) with the hook off on this thread: for Python code of the engine's own that is called while frames are
 * looked at (guards that are Python functions, the callback). */
PyObject *hook_off_call(PyObject *fn, PyObject *const *args, Py_ssize_t nargs);
PyObject *hook_off_check(PyObject *guard, PyObject *slots); /* guard.check(slots), likewise */
int hook_module_init(PyObject *module);

/* ---- graphcall.c ----------------------------------------------------------------------------------------------- */

int graphcall_module_init(PyObject *module);

#endif
