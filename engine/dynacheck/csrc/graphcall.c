/* The constant of rewritten code that runs a graph.
 *
 * The callable that a backend made may hold a user's model. The constants of code objects can't be collected when
 * they are part of a cycle, so rewritten code has a GraphCall, which knows its GraphOwner without owning it: the
 * owner has the callable and belongs to the compile region. Each points at the other, and takes itself off when it
 * goes.
 */
#include "native.h"
#include <structmember.h>

struct GraphCall;

typedef struct {
    PyObject_HEAD PyObject *fn, *recovery;
    struct GraphCall *call; /* borrowed */
    PyObject *weakrefs;
} GraphOwner;

typedef struct GraphCall {
    PyObject_HEAD vectorcallfunc vectorcall;
    GraphOwner *owner; /* borrowed; NULL once it is gone */
} GraphCall;

static PyTypeObject GraphCall_Type;

static PyObject *graph_call_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    GraphOwner *owner = ((GraphCall *)self)->owner;
    if (UNLIKELY(kwnames != NULL && PyTuple_GET_SIZE(kwnames) != 0)) {
        PyErr_SetString(PyExc_TypeError, "a graph takes no keyword arguments");
        return NULL;
    }
    if (UNLIKELY(owner == NULL || owner->fn == NULL)) {
        PyErr_SetString(PyExc_ReferenceError, "the compile region that this graph belonged to is gone");
        return NULL;
    }
    return hook_off_call(owner->fn, args, PyVectorcall_NARGS(nargsf));
}

static void graph_call_dealloc(GraphCall *c) {
    if (c->owner != NULL) c->owner->call = NULL;
    Py_TYPE(c)->tp_free(c);
}

static PyObject *graph_call_wrapped(GraphCall *c, void *unused) {
    (void)unused;
    return Py_NewRef(c->owner != NULL && c->owner->fn != NULL ? c->owner->fn : Py_None);
}

static PyObject *graph_call_recovery(GraphCall *c, void *unused) {
    (void)unused;
    return Py_NewRef(c->owner != NULL && c->owner->recovery != NULL ? c->owner->recovery : Py_None);
}

static PyGetSetDef graph_call_getset[] = {
    {"recovery", (getter)graph_call_recovery, NULL, "What its owner has to do when it raises, or None.", NULL},
    {"__wrapped__", (getter)graph_call_wrapped, NULL, "The callable; None once its owner is gone.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject GraphCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacheck._C.GraphCall",
    .tp_basicsize = sizeof(GraphCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)graph_call_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(GraphCall, vectorcall),
    .tp_getset = graph_call_getset,
};

static PyObject *graph_owner_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"fn", "recovery", NULL};
    PyObject *fn, *recovery = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:GraphOwner", names, &fn, &recovery)) return NULL;
    if (!PyCallable_Check(fn)) return PyErr_Format(PyExc_TypeError, "GraphOwner needs a callable");
    GraphOwner *o = (GraphOwner *)type->tp_alloc(type, 0);
    if (o != NULL) {
        o->fn = Py_NewRef(fn);
        o->recovery = Py_NewRef(recovery);
    }
    return (PyObject *)o;
}

static int graph_owner_traverse(GraphOwner *o, visitproc visit, void *arg) {
    Py_VISIT(o->fn);
    Py_VISIT(o->recovery);
    return 0;
}

static int graph_owner_clear(GraphOwner *o) {
    Py_CLEAR(o->fn);
    Py_CLEAR(o->recovery);
    return 0;
}

static void graph_owner_dealloc(GraphOwner *o) {
    PyObject_GC_UnTrack(o);
    if (o->weakrefs != NULL) PyObject_ClearWeakRefs((PyObject *)o);
    if (o->call != NULL) o->call->owner = NULL;
    o->call = NULL;
    graph_owner_clear(o);
    Py_TYPE(o)->tp_free(o);
}

static PyObject *graph_owner_call(GraphOwner *o, void *unused) {
    (void)unused;
    if (o->call != NULL) return Py_NewRef((PyObject *)o->call);
    GraphCall *c = PyObject_New(GraphCall, &GraphCall_Type);
    if (c == NULL) return NULL;
    c->vectorcall = graph_call_vectorcall;
    c->owner = o;
    o->call = c;
    return (PyObject *)c;
}

static PyMemberDef graph_owner_members[] = {
    {"fn", T_OBJECT, offsetof(GraphOwner, fn), READONLY, "The callable."},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef graph_owner_getset[] = {
    {"call", (getter)graph_owner_call, NULL, "What calls it, with the hook off, for as long as the owner lives.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject GraphOwner_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacheck._C.GraphOwner",
    .tp_basicsize = sizeof(GraphOwner),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = graph_owner_new,
    .tp_dealloc = (destructor)graph_owner_dealloc,
    .tp_traverse = (traverseproc)graph_owner_traverse,
    .tp_clear = (inquiry)graph_owner_clear,
    .tp_members = graph_owner_members,
    .tp_getset = graph_owner_getset,
    .tp_weaklistoffset = offsetof(GraphOwner, weakrefs),
};

int graphcall_module_init(PyObject *module) {
    return PyModule_AddType(module, &GraphOwner_Type) < 0 ? -1 : PyModule_AddType(module, &GraphCall_Type);
}
