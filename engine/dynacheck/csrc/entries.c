/* Region, Entry and CodeState: what hangs on a code object.
 *
 * Nothing here keeps user objects alive through a code object, which the garbage collector can't look into: an entry
 * holds its region weakly, its program holds guarded objects weakly, and what dies takes the entry out of its state.
 */
#include "native.h"
#include <structmember.h>

Py_ssize_t dynacheck_extra = -1;
static CodeState *all_states;
static PyObject *no_entries; /* the empty tuple */

static void code_state_remove(CodeState *state, Entry *entry);

/* ---- Entry ---------------------------------------------------------------------------------------------------- */

static void entry_leave_region(Entry *e) {
    if (e->region == NULL) return;
    *(e->region_prev != NULL ? &e->region_prev->region_next : &e->region->first) = e->region_next;
    if (e->region_next != NULL) e->region_next->region_prev = e->region_prev;
    e->region = NULL;
    e->region_prev = e->region_next = NULL;
}

static void entry_tell_death(Entry *e) {
    PyObject *fn = e->on_death;
    if (fn == NULL) return;
    e->on_death = NULL;
    PyObject *pending = exc_take();
    PyObject *result = PyObject_CallOneArg(fn, (PyObject *)e);
    if (result == NULL) PyErr_WriteUnraisable(fn);
    Py_XDECREF(result);
    Py_DECREF(fn);
    exc_restore(pending);
}

/* The caller holds a reference. */
static void entry_die(Entry *e) {
    if (e->alive) {
        e->alive = 0;
        if (e->state != NULL) code_state_remove(e->state, e);
        entry_tell_death(e);
    }
}

static void entry_program_died(void *self) {
    Py_INCREF(self);
    entry_die(self);
    Py_DECREF(self);
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"program", "code", "region", "owner", "splits", NULL};
    PyObject *program, *code, *region, *owner = Py_None;
    int splits = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O|Op:Entry", names, &program, &PyCode_Type, &code, &region,
                                     &owner, &splits)) {
        return NULL;
    }
    if (program != Py_None && !Py_IS_TYPE(program, &GuardProgram_Type)) {
        return PyErr_Format(PyExc_TypeError, "program must be a GuardProgram or None, not %.200s",
                            Py_TYPE(program)->tp_name);
    }
    if (region != Py_None && !Py_IS_TYPE(region, &Region_Type)) {
        PyErr_SetString(PyExc_TypeError, "region must be a Region or None");
        return NULL;
    }
    Entry *e = (Entry *)type->tp_alloc(type, 0);
    if (e == NULL) return NULL;
    e->code = (PyCodeObject *)Py_NewRef(code);
    e->owner = Py_NewRef(owner);
    e->alive = 1;
    e->splits = splits;
    if (region != Py_None) {
        e->region = (Region *)region;
        e->region_next = e->region->first;
        if (e->region_next != NULL) e->region_next->region_prev = e;
        e->region->first = e;
    }
    if (program != Py_None) {
        if (guard_program_on_death(program, entry_program_died, e) < 0) {
            Py_DECREF(e);
            return NULL;
        }
        e->program = Py_NewRef(program);
        e->captures = guard_program_captures(program) != 0;
        e->alive = guard_program_alive(program) != 0;
    }
    return (PyObject *)e;
}

static int entry_traverse(Entry *e, visitproc visit, void *arg) {
    Py_VISIT(e->program);
    Py_VISIT(e->code);
    Py_VISIT(e->owner);
    Py_VISIT(e->on_death);
    return 0;
}

static int entry_clear(Entry *e) {
    if (e->program != NULL) {
        e->alive = 0; /* without its program it would always pass */
        guard_program_on_death(e->program, NULL, NULL);
        Py_CLEAR(e->program);
    }
    Py_CLEAR(e->owner);
    Py_CLEAR(e->on_death);
    return 0;
}

static void entry_dealloc(Entry *e) {
    PyObject_GC_UnTrack(e);
    entry_leave_region(e);
    entry_clear(e);
    Py_CLEAR(e->plain);
    Py_CLEAR(e->code);
    Py_TYPE(e)->tp_free(e);
}

/* The entry's code with all argument slots positional, then the captured tuple if there is one. */
PyCodeObject *entry_plain_code(Entry *e) {
    if (e->plain != NULL) return e->plain;
    int nargs = code_nargs(e->code) + e->captures;
    PyObject *replace = PyObject_GetAttrString((PyObject *)e->code, "replace");
    PyObject *kwargs =
        Py_BuildValue("{s:i,s:i,s:i,s:i}", "co_argcount", nargs, "co_posonlyargcount", 0, "co_kwonlyargcount", 0,
                      "co_flags", e->code->co_flags & ~(CO_VARARGS | CO_VARKEYWORDS));
    PyObject *args = PyTuple_New(0), *plain = NULL;
    if (replace != NULL && kwargs != NULL && args != NULL) plain = PyObject_Call(replace, args, kwargs);
    Py_XDECREF(replace);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    CodeState *state = plain == NULL ? NULL : code_state((PyCodeObject *)plain);
    if (state == NULL) {
        Py_XDECREF(plain);
        return NULL;
    }
    state->plain = 1;
    if (e->plain == NULL) /* still: replace() raises audit events, whose hooks may have come here too */
        e->plain = (PyCodeObject *)plain;
    else
        Py_DECREF(plain);
    return e->plain;
}

static PyObject *entry_invalidate(Entry *e, PyObject *unused) {
    (void)unused;
    entry_die(e);
    Py_RETURN_NONE;
}

static PyObject *entry_on_death(Entry *e, PyObject *fn) {
    if (fn != Py_None && !PyCallable_Check(fn)) {
        PyErr_SetString(PyExc_TypeError, "on_death takes a callable or None");
        return NULL;
    }
    Py_XSETREF(e->on_death, fn == Py_None ? NULL : Py_NewRef(fn));
    if (!e->alive) entry_tell_death(e);
    Py_RETURN_NONE;
}

/* T_OBJECT members that are NULL read as None. */
static PyMemberDef entry_members[] = {
    {"program", T_OBJECT, offsetof(Entry, program), READONLY, "The guards; None: always passes."},
    {"region", T_OBJECT, offsetof(Entry, region), READONLY, "The compile region; None: no region, or dead."},
    {"code", T_OBJECT, offsetof(Entry, code), READONLY, "The rewritten code."},
    {"alive", T_BOOL, offsetof(Entry, alive), READONLY, "False once it can't serve any more."},
    {"owner", T_OBJECT, offsetof(Entry, owner), READONLY, "What the engine wants to find again."},
    {"hits", T_LONGLONG, offsetof(Entry, hits), 0, "How often the hook ran this entry, its first run not counted."},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef entry_methods[] = {
    {"invalidate", (PyCFunction)entry_invalidate, METH_NOARGS, "Never run it again."},
    {"on_death", (PyCFunction)entry_on_death, METH_O, "Have fn(entry) called once `alive` turns False."},
    {NULL, NULL, 0, NULL},
};
PyTypeObject Entry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacheck._C.Entry",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = entry_new,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_clear,
    .tp_members = entry_members,
    .tp_methods = entry_methods,
};

/* ---- Region --------------------------------------------------------------------------------------------------- */

static PyObject *region_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"key", NULL};
    PyObject *key = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Region", names, &key)) return NULL;
    Region *r = (Region *)type->tp_alloc(type, 0);
    if (r != NULL) r->key = Py_NewRef(key);
    return (PyObject *)r;
}

static int region_traverse(Region *r, visitproc visit, void *arg) {
    Py_VISIT(r->key);
    return 0;
}

static int region_clear(Region *r) {
    Py_CLEAR(r->key);
    return 0;
}

/* Takes its entries along. First all are cut off, so that what runs next can't reach the dying region. */
static void region_dealloc(Region *r) {
    PyObject_GC_UnTrack(r);
    if (r->weakrefs != NULL) PyObject_ClearWeakRefs((PyObject *)r);
    Entry *e = r->first, *next;
    for (Entry *i = e; i != NULL; i = i->region_next) {
        Py_INCREF(i);
        i->region = NULL;
    }
    for (; e != NULL; e = next) {
        next = e->region_next;
        e->region_prev = e->region_next = NULL;
        entry_die(e);
        Py_DECREF(e);
    }
    region_clear(r);
    Py_TYPE(r)->tp_free(r);
}

static PyMemberDef region_members[] = {
    {"key", T_OBJECT, offsetof(Region, key), READONLY, "What the region stands for."},
    {NULL, 0, 0, 0, NULL},
};
PyTypeObject Region_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacheck._C.Region",
    .tp_basicsize = sizeof(Region),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = region_new,
    .tp_dealloc = (destructor)region_dealloc,
    .tp_traverse = (traverseproc)region_traverse,
    .tp_clear = (inquiry)region_clear,
    .tp_weaklistoffset = offsetof(Region, weakrefs),
    .tp_members = region_members,
};

/* ---- CodeState ------------------------------------------------------------------------------------------------- */

CodeState *code_state(PyCodeObject *code) {
    CodeState *s = code_state_peek(code);
    if (s != NULL) return s;
    s = (CodeState *)CodeState_Type.tp_alloc(&CodeState_Type, 0);
    if (s == NULL) return NULL;
    s->entries = Py_NewRef(no_entries);
    CodeState *other = code_state_peek(code); /* collecting garbage may run code that made one */
    if (other != NULL) {
        Py_DECREF(s);
        return other;
    }
    if (DC_CODE_SET_EXTRA((PyObject *)code, dynacheck_extra, s) < 0) {
        Py_DECREF(s);
        return PyErr_Occurred() ? NULL : (CodeState *)PyErr_NoMemory(); /* 3.11 sets no exception */
    }
    s->code = code;
    s->next = all_states;
    if (all_states != NULL) all_states->prev = s;
    all_states = s;
    return s;
}

static void code_state_unlink(CodeState *s) {
    if (s->code == NULL) return;
    *(s->prev != NULL ? &s->prev->next : &all_states) = s->next;
    if (s->next != NULL) s->next->prev = s->prev;
    s->prev = s->next = NULL;
    s->code = NULL;
}

/* Steals `entries`. */
static void code_state_swap(CodeState *s, PyObject *entries) {
    PyObject *old = s->entries;
    s->entries = entries;
    Py_XDECREF(old);
}

/* The state's entries without `without`, with `front` in front when it isn't NULL. NULL: no memory. */
static PyObject *entries_with(CodeState *s, Entry *front, Entry *without) {
    PyObject *old = s->entries;
    Py_ssize_t n = PyTuple_GET_SIZE(old), kept = 0, at = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        kept += (Entry *)PyTuple_GET_ITEM(old, i) != without;
    PyObject *entries = PyTuple_New(kept + (front != NULL));
    if (entries == NULL) return NULL;
    if (front != NULL) PyTuple_SET_ITEM(entries, at++, Py_NewRef(front));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *e = PyTuple_GET_ITEM(old, i);
        if ((Entry *)e != without) PyTuple_SET_ITEM(entries, at++, Py_NewRef(e));
    }
    return entries;
}

static void code_state_drop_entries(CodeState *s) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(s->entries); i++)
        ((Entry *)PyTuple_GET_ITEM(s->entries, i))->state = NULL;
    s->last_hit = NULL;
    code_state_swap(s, Py_NewRef(no_entries));
}

static void code_state_remove(CodeState *s, Entry *e) {
    PyObject *pending = exc_take();
    PyObject *entries = entries_with(s, NULL, e);
    e->state = NULL;
    if (entries != NULL)
        code_state_swap(s, entries);
    else
        code_state_drop_entries(s); /* no memory: fewer entries are right, a dead one among them isn't */
    exc_restore(pending);
}

static int unfit(CodeState *s, const char *what) {
    PyErr_Format(PyExc_ValueError, "the rewritten code of %U has %s", s->code->co_qualname, what);
    return -1;
}

static int same_name(PyCodeObject *a, int i, PyCodeObject *b, int j) {
    return PyUnicode_Compare(PyTuple_GET_ITEM(a->co_localsplusnames, i),
                             PyTuple_GET_ITEM(b->co_localsplusnames, j)) == 0;
}

/* Whether a frame made for the state's code can run the entry's code in place. */
static int check_fits(CodeState *s, Entry *e) {
    const int signature = CO_VARARGS | CO_VARKEYWORDS | CO_OPTIMIZED | CO_NEWLOCALS;
    const int generators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    PyCodeObject *was = s->code, *now = e->code;
    int nargs = code_nargs(was), nfree = was->co_nfreevars;
    if ((was->co_flags | now->co_flags) & generators) return unfit(s, "a generator or coroutine");
    if (was->co_argcount != now->co_argcount || was->co_posonlyargcount != now->co_posonlyargcount ||
        was->co_kwonlyargcount != now->co_kwonlyargcount) {
        return unfit(s, "another number of arguments");
    }
    if ((was->co_flags & signature) != (now->co_flags & signature) || !(was->co_flags & CO_OPTIMIZED))
        return unfit(s, "other flags: *args, **kwargs, optimized and newlocals must be the same");
    for (int i = 0; i < nargs; i++)
        if (!same_name(was, i, now, i)) return unfit(s, "other argument names");
    if (nfree != now->co_nfreevars) return unfit(s, "another number of free variables");
    for (int i = 1; i <= nfree; i++)
        if (!same_name(was, was->co_nlocalsplus - i, now, now->co_nlocalsplus - i))
            return unfit(s, "other free variables, or in another order");
    if (e->captures && now->co_nlocals <= nargs)
        return unfit(s, "no local after the arguments for the captured values");
    return 0;
}

int code_state_add(CodeState *s, Entry *e) {
    if (e->state == s) return 0;
    if (e->state != NULL || s->code == NULL || !e->alive) {
        PyErr_SetString(PyExc_ValueError, e->state != NULL  ? "the entry belongs to another code object"
                                          : s->code == NULL ? "the code object is gone"
                                                            : "the entry is dead");
        return -1;
    }
    if (check_fits(s, e) < 0) return -1;
    PyObject *entries = entries_with(s, e, e);
    if (entries == NULL) return -1;
    e->state = s;
    code_state_swap(s, entries);
    return 0;
}

/* Moves an entry to the front when it hits twice in a row: calls that alternate between entries don't reorder, a new
 * phase of the program does after two calls. */
void code_state_hit(CodeState *s, Entry *e, Py_ssize_t index) {
    s->hits++;
    e->hits++;
    if (index > 0 && s->last_hit == e && e->state == s) {
        PyObject *entries = entries_with(s, e, e);
        if (entries == NULL)
            PyErr_Clear(); /* only the order is at stake */
        else
            code_state_swap(s, entries);
    }
    s->last_hit = e;
}

/* The code object is going. */
static void extra_free(void *extra) {
    CodeState *s = extra;
    if (s != NULL) {
        code_state_unlink(s);
        code_state_drop_entries(s);
        Py_DECREF(s);
    }
}

static int code_state_traverse(CodeState *s, visitproc visit, void *arg) {
    Py_VISIT(s->entries);
    Py_VISIT(s->data);
    return 0;
}

static int code_state_gc_clear(CodeState *s) {
    code_state_drop_entries(s);
    Py_CLEAR(s->data);
    return 0;
}

static void code_state_dealloc(CodeState *s) {
    PyObject_GC_UnTrack(s);
    code_state_gc_clear(s);
    Py_CLEAR(s->entries);
    Py_TYPE(s)->tp_free(s);
}

static int want_entry(PyObject *arg) {
    if (!Py_IS_TYPE(arg, &Entry_Type)) {
        PyErr_Format(PyExc_TypeError, "expected an Entry, not %.200s", Py_TYPE(arg)->tp_name);
        return -1;
    }
    return 0;
}

static PyObject *code_state_py_add(CodeState *s, PyObject *arg) {
    if (want_entry(arg) < 0 || code_state_add(s, (Entry *)arg) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *code_state_py_remove(CodeState *s, PyObject *arg) {
    if (want_entry(arg) < 0) return NULL;
    if (((Entry *)arg)->state != s) {
        PyErr_SetString(PyExc_ValueError, "the entry isn't one of this code object's");
        return NULL;
    }
    code_state_remove(s, (Entry *)arg);
    Py_RETURN_NONE;
}

static PyObject *code_state_py_clear(CodeState *s, PyObject *unused) {
    (void)unused;
    s->skip = s->skip_recursive = s->run_only = 0;
    s->hits = s->misses = 0;
    code_state_drop_entries(s);
    Py_CLEAR(s->data);
    Py_RETURN_NONE;
}

static PyMemberDef code_state_members[] = {
    {"code", T_OBJECT, offsetof(CodeState, code), READONLY, "The code object, held weakly."},
    {"skip", T_BOOL, offsetof(CodeState, skip), 0, "Run the frame as it is; its callees are looked at."},
    {"skip_recursive", T_BOOL, offsetof(CodeState, skip_recursive), 0, "Run all below it with the hook off."},
    {"run_only", T_BOOL, offsetof(CodeState, run_only), 0, "Entries serve; never call back."},
    {"hits", T_LONGLONG, offsetof(CodeState, hits), 0, "Frames that an entry served."},
    {"misses", T_LONGLONG, offsetof(CodeState, misses), 0, "Frames that no entry passed for."},
    {"entries", T_OBJECT, offsetof(CodeState, entries), READONLY, "Live entries, in the order they are tried."},
    {"data", T_OBJECT, offsetof(CodeState, data), 0, "For the runtime layer."},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef code_state_methods[] = {
    {"add", (PyCFunction)code_state_py_add, METH_O, "Put an entry in front, unless it is there."},
    {"remove", (PyCFunction)code_state_py_remove, METH_O, "Take an entry out."},
    {"clear", (PyCFunction)code_state_py_clear, METH_NOARGS, "Make it as new: no entries, flags, counts, data."},
    {NULL, NULL, 0, NULL},
};
PyTypeObject CodeState_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacheck._C.CodeState",
    .tp_basicsize = sizeof(CodeState),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)code_state_dealloc,
    .tp_traverse = (traverseproc)code_state_traverse,
    .tp_clear = (inquiry)code_state_gc_clear,
    .tp_members = code_state_members,
    .tp_methods = code_state_methods,
};

/* ---- functions ------------------------------------------------------------------------------------------------- */

static int want_code(PyObject *arg) {
    if (!PyCode_Check(arg)) {
        PyErr_Format(PyExc_TypeError, "expected a code object, not %.200s", Py_TYPE(arg)->tp_name);
        return -1;
    }
    return 0;
}

static PyObject *py_state(PyObject *module, PyObject *code) {
    (void)module;
    return want_code(code) < 0 ? NULL : Py_XNewRef((PyObject *)code_state((PyCodeObject *)code));
}

static PyObject *py_peek_state(PyObject *module, PyObject *code) {
    (void)module;
    if (want_code(code) < 0) return NULL;
    CodeState *s = code_state_peek((PyCodeObject *)code);
    return Py_NewRef(s != NULL ? (PyObject *)s : Py_None);
}

static PyObject *py_states(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    Py_ssize_t n = 0;
    for (CodeState *s = all_states; s != NULL; s = s->next)
        n++;
    PyObject *list = PyList_New(n); /* may collect garbage, and states with it */
    Py_ssize_t at = 0;
    for (CodeState *s = all_states; list != NULL && s != NULL && at < n; s = s->next)
        if (!s->plain) PyList_SET_ITEM(list, at++, Py_NewRef((PyObject *)s));
    if (list != NULL && at < n && PyList_SetSlice(list, at, n, NULL) < 0) Py_CLEAR(list);
    return list;
}

static PyMethodDef methods[] = {
    {"state", py_state, METH_O, "The CodeState of a code object, made on first need."},
    {"peek_state", py_peek_state, METH_O, "The CodeState of a code object, or None."},
    {"states", py_states, METH_NOARGS, "All live CodeStates."},
    {NULL, NULL, 0, NULL},
};

int entries_module_init(PyObject *module) {
    if (dynacheck_extra < 0 && (dynacheck_extra = DC_REQUEST_EXTRA(extra_free)) < 0) {
        PyErr_SetString(PyExc_ImportError, "other extensions have taken all extra slots of code objects");
        return -1;
    }
    if (no_entries == NULL && (no_entries = PyTuple_New(0)) == NULL) return -1;
    if (PyModule_AddType(module, &Region_Type) < 0 || PyModule_AddType(module, &Entry_Type) < 0 ||
        PyModule_AddType(module, &CodeState_Type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
