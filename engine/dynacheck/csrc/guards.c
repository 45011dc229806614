/* Guard programs: what runs on every call, and the Python object. */
#include "guards.h"
#include <time.h>

/* ---- running ------------------------------------------------------------------------------------------- */

static int run_checks(Program *p, Walk *w) {
    int r = 1;
    for (int i = 0; r == 1 && i < p->nreads; i++)
        r = ambient_matches(&p->reads[i]);
    if (r == 1 && p->ambient_slow) {
        PyObject *none = PyTuple_New(0), *verdict = none == NULL ? NULL : hook_off_check(p->ambient, none);
        Py_XDECREF(none);
        r = verdict == NULL ? -1 : PyObject_IsTrue(verdict);
        Py_XDECREF(verdict);
        p->slow++;
    }
    int functions = r == 1 && p->getters ? torch_functions_off() : -1;
    for (int i = 0; r == 1 && i < p->ndirect; i++)
        r = node_walk(p->direct[i], NULL, w, 0);
    for (int i = 0; r == 1 && i < p->ngroups; i++)
        r = group_check(&p->groups[i], w);
    for (int i = 0; r == 1 && i < p->nrelations; i++)
        r = relation_check(&p->relations[i], w);
    torch_functions_back(functions);
    return r;
}

static PyObject *captured_tuple(const Program *p, PyObject *const *slots) {
    int collecting = PyGC_Disable(); /* the collector may run anything, and slots may be borrowed */
    PyObject *values = PyTuple_New(p->ncaptures);
    if (collecting) PyGC_Enable();
    for (int i = 0; values != NULL && i < p->ncaptures; i++) {
        PyObject *v = slot_value(slots[p->captures[i]]);
        PyTuple_SET_ITEM(values, i, Py_NewRef(v == NULL ? dynacheck_null : v));
    }
    return values;
}

int guard_program_check(PyObject *program, const GuardFrame *gf, PyObject **captured) {
    Program *p = (Program *)program;
    PyObject *few[32], **slots = few;
    if (p->dead) return 0;
    if (p->nslots > 32) {
        slots = PyMem_Malloc((size_t)p->nslots * sizeof *slots);
        if (slots == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    memset(slots, 0, (size_t)p->nslots * sizeof *slots);
    Walk w = {.program = p, .gf = gf, .slots = slots, .plain = p->busy};
    Py_INCREF(p);
    p->busy++;
    p->checks++;
    int r = run_checks(p, &w);
    if (r == 1 && p->dead) r = 0; /* a Python check let the collector run */
    p->busy--;
    p->passes += r == 1;
    if (r == 1 && captured != NULL && p->ncaptures > 0 && (*captured = captured_tuple(p, slots)) == NULL) r = -1;
    for (int i = 0; w.owns && i < p->nslots; i++)
        slot_drop(&slots[i]);
    if (slots != few) PyMem_Free(slots);
    Py_DECREF(p);
    return r;
}

int guard_program_captures(PyObject *program) {
    return ((Program *)program)->ncaptures;
}

int guard_program_alive(PyObject *program) {
    return !((Program *)program)->dead;
}

int guard_program_on_death(PyObject *program, void (*fn)(void *), void *arg) {
    Program *p = (Program *)program;
    if (fn != NULL && p->on_death != NULL) {
        PyErr_SetString(PyExc_ValueError, "the program has a listener");
        return -1;
    }
    p->on_death = fn;
    p->on_death_arg = arg;
    return 0;
}

int guards_force(const char *name, int value) {
    if (strcmp(name, "shortcut") == 0) return memo_force(value), 1;
    if (strcmp(name, "tensors") == 0) return tensor_places.forced_off = !value, 1;
    return 0;
}

/* ---- the Python object --------------------------------------------------------------------------------- */

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"spec", NULL};
    PyObject *spec;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:GuardProgram", names, &PyTuple_Type, &spec)) return NULL;
    Program *p = (Program *)type->tp_alloc(type, 0);
    if (p == NULL) return NULL;
    if (program_build(p, spec) < 0) Py_CLEAR(p);
    return (PyObject *)p;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg) {
    Program *p = (Program *)self;
    Py_VISIT(p->keep);
    return 0;
}

static int program_clear(PyObject *self) {
    Program *p = (Program *)self;
    p->dead = 1; /* what it borrows from `keep` is going */
    Py_CLEAR(p->keep);
    return 0;
}

static void program_dealloc(PyObject *self) {
    Program *p = (Program *)self;
    PyObject_GC_UnTrack(self);
    if (p->life != NULL) PyCapsule_SetContext(p->life, NULL);
    for (int i = 0; i < p->ngroups; i++)
        group_clear(&p->groups[i]);
    PyMem_Free(p->groups);
    PyMem_Free(p->direct);
    nodes_free(p->nodes, p->nnodes);
    for (int i = 0; i < p->nrelations; i++) {
        check_free(&p->relations[i].check);
        PyMem_Free(p->relations[i].slots);
    }
    PyMem_Free(p->relations);
    PyMem_Free(p->reads);
    PyMem_Free(p->captures);
    Py_CLEAR(p->refs);
    Py_CLEAR(p->watcher);
    Py_CLEAR(p->life);
    Py_CLEAR(p->keep);
    Py_TYPE(self)->tp_free(self);
}

static int frame_of_args(PyObject *args, GuardFrame *gf, long *n) {
    PyObject *values, *func;
    *n = 1;
    if (!PyArg_ParseTuple(args, "O!O!|l", &PyTuple_Type, &values, &PyFunction_Type, &func, n)) return -1;
    PyCodeObject *code = (PyCodeObject *)((PyFunctionObject *)func)->func_code;
    if (PyTuple_GET_SIZE(values) < code_nargs(code)) {
        PyErr_SetString(PyExc_ValueError, "one value for every argument slot of the function is needed");
        return -1;
    }
    *gf = (GuardFrame){NULL, ((PyTupleObject *)values)->ob_item, (PyFunctionObject *)func};
    return 0;
}

static PyObject *program_check(PyObject *self, PyObject *args) {
    GuardFrame gf;
    long n;
    int r = frame_of_args(args, &gf, &n) < 0 ? -1 : guard_program_check(self, &gf, NULL);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static PyObject *program_captured(PyObject *self, PyObject *args) {
    GuardFrame gf;
    long n;
    PyObject *values = NULL;
    int r = frame_of_args(args, &gf, &n) < 0 ? -1 : guard_program_check(self, &gf, &values);
    if (r < 0) return NULL;
    if (r == 0) Py_RETURN_NONE;
    return values != NULL ? values : PyTuple_New(0);
}

static PyObject *program_bench(PyObject *self, PyObject *args) {
    GuardFrame gf;
    long n;
    struct timespec start, end;
    if (frame_of_args(args, &gf, &n) < 0) return NULL;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long i = 0; i < n; i++) {
        PyObject *values = NULL;
        if (guard_program_check(self, &gf, &values) < 0) return NULL;
        Py_XDECREF(values);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    return PyFloat_FromDouble(ns / (double)(n > 0 ? n : 1));
}

static PyObject *program_stats(PyObject *self, PyObject *unused) {
    Program *p = (Program *)self;
    int nodes = 0;
    (void)unused;
    for (int i = 0; i < p->nnodes; i++)
        nodes += node_count(&p->nodes[i]);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:i,s:i,s:i}", "checks", p->checks, "passes", p->passes, "hits",
                         p->hits, "walks", p->walks, "repairs", p->repairs, "slow", p->slow, "nodes", nodes, "groups",
                         p->ngroups, "reads", p->nreads);
}

static PyObject *program_alive(PyObject *self, void *closure) {
    (void)closure;
    return PyBool_FromLong(guard_program_alive(self));
}

static PyObject *program_captures(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromLong(guard_program_captures(self));
}

static PyMethodDef program_methods[] = {
    {"check", program_check, METH_VARARGS, "Verdict for these argument slots and this function."},
    {"captured", program_captured, METH_VARARGS, "The captured values when the guards pass, else None."},
    {"bench", program_bench, METH_VARARGS, "Nanoseconds per check."},
    {"stats", program_stats, METH_NOARGS, "What happened so far."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef program_getset[] = {
    {"alive", program_alive, NULL, "False once a weakly held object died.", NULL},
    {"captures", program_captures, NULL, "How many values it hands over.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject GuardProgram_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacheck._C.GuardProgram",
    .tp_basicsize = sizeof(Program),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = program_new,
    .tp_dealloc = program_dealloc,
    .tp_traverse = program_traverse,
    .tp_clear = program_clear,
    .tp_methods = program_methods,
    .tp_getset = program_getset,
};

static int add_numbers(PyObject *module, const char *name, const char *const *names, int n) {
    PyObject *numbers = PyDict_New();
    int r = numbers == NULL ? -1 : 0;
    for (int i = 0; r == 0 && i < n; i++) {
        PyObject *number = PyLong_FromLong(i);
        r = number == NULL ? -1 : PyDict_SetItemString(numbers, names[i], number);
        Py_XDECREF(number);
    }
    if (r == 0) r = PyModule_AddObjectRef(module, name, numbers);
    Py_XDECREF(numbers);
    return r;
}

#define DC_AS_NAME(name) #name,

int guards_module_init(PyObject *module) {
    static const char *const accessors[] = {DC_ACCESSORS(DC_AS_NAME)}, *const ops[] = {DC_OPS(DC_AS_NAME)};
    if (PyModule_AddType(module, &GuardProgram_Type) < 0 || PyModule_AddFunctions(module, torch_methods) < 0)
        return -1;
    if (add_numbers(module, "GUARD_ACCESSORS", accessors, ACC_COUNT) < 0) return -1;
    if (add_numbers(module, "GUARD_OPS", ops, OP_COUNT) < 0) return -1;
    if (versions_module_init() < 0) return -1;
    memo_force(1);
    return 0;
}
