/* Guard programs: built once from a specification (guards/program.py), then run on every call. */
#include "guards.h"
#include <time.h>

static PyObject *dead_ref(PyObject *life, PyObject *ref);
static PyMethodDef dead_ref_method = {"guarded_object_died", dead_ref, METH_O, NULL};

/* ---- holding objects ---------------------------------------------------------------------------------------------
 */

static PyObject *keep(Program *p, PyObject *obj) { /* borrowed: the program owns it from now on */
    return obj != NULL && PyList_Append(p->keep, obj) == 0 ? obj : NULL;
}

/* Called with the capsule when a weakly held object dies, before its memory can be used again. */
static PyObject *dead_ref(PyObject *life, PyObject *ref) {
    (void)ref;
    Program *p = PyCapsule_GetContext(life);
    if (p == NULL || p->dead) Py_RETURN_NONE;
    Py_INCREF(p);
    p->dead = 1;
    if (p->on_death != NULL) {
        void (*fn)(void *) = p->on_death;
        p->on_death = NULL;
        fn(p->on_death_arg);
    }
    Py_DECREF(p);
    Py_RETURN_NONE;
}

static int hold_weakly(Program *p, PyObject *obj) {
    PyObject *address = PyLong_FromVoidPtr(obj), *ref = NULL;
    int r = address == NULL ? -1 : PyDict_Contains(p->refs, address);
    if (r == 0) {
        ref = PyWeakref_NewRef(obj, p->watcher);
        r = ref == NULL ? -1 : PyDict_SetItem(p->refs, address, ref);
    }
    Py_XDECREF(address);
    Py_XDECREF(ref);
    return r < 0 ? -1 : 0;
}

static int build_pins(Program *p, PyObject *specs, Pin **pins);

static int build_parts(Program *p, Pin *pin, PyObject *pairs) {
    Py_ssize_t n = PyTuple_GET_SIZE(pairs);
    PyObject *names = PyTuple_New(n), *specs = PyTuple_New(n);
    if (names != NULL && specs != NULL) {
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *pair = PyTuple_GET_ITEM(pairs, i);
            PyTuple_SET_ITEM(names, i, Py_NewRef(PyTuple_GET_ITEM(pair, 0)));
            PyTuple_SET_ITEM(specs, i, Py_NewRef(PyTuple_GET_ITEM(pair, 1)));
        }
        pin->name = keep(p, names);
        pin->nparts = build_pins(p, specs, &pin->parts);
    }
    Py_XDECREF(names);
    Py_XDECREF(specs);
    return pin->name == NULL || pin->nparts < 0 ? -1 : 0;
}

static int build_pin(Program *p, Pin *pin, PyObject *spec) {
    const char *how = PyTuple_Check(spec) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(spec, 0)) : NULL;
    Py_ssize_t n = how == NULL ? 0 : PyTuple_GET_SIZE(spec);
    PyObject *a = n > 1 ? PyTuple_GET_ITEM(spec, 1) : NULL, *b = n > 2 ? PyTuple_GET_ITEM(spec, 2) : NULL;
    if (how == NULL) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "not an object's operand");
        return -1;
    }
    pin->how = PIN_OBJECT;
    pin->object = a;
    if (strcmp(how, "WEAK") == 0) return hold_weakly(p, a);
    if (strcmp(how, "STRONG") == 0) return keep(p, a) == NULL ? -1 : 0;
    if (strcmp(how, "CONST") == 0) {
        pin->how = PIN_CONST;
        return keep(p, a) == NULL ? -1 : 0;
    }
    if (strcmp(how, "THROUGH") == 0) {
        pin->object = PyLong_AsVoidPtr(a);
        return PyErr_Occurred() ? -1 : hold_weakly(p, b);
    }
    if (strcmp(how, "DESCRIPTOR") == 0) {
        pin->how = PIN_DESCRIPTOR;
        pin->owner = b;
        pin->name = keep(p, PyTuple_GET_ITEM(spec, 3));
        return pin->name == NULL || hold_weakly(p, a) < 0 ? -1 : hold_weakly(p, b);
    }
    if (strcmp(how, "PARTS") == 0) {
        pin->how = PIN_PARTS;
        return hold_weakly(p, a) < 0 ? -1 : build_parts(p, pin, b);
    }
    pin->object = NULL;
    pin->how = strcmp(how, "ANY") == 0 ? PIN_ANY : PIN_DEAD;
    p->dead |= pin->how == PIN_DEAD;
    return 0;
}

static void free_pins(Pin *pins, int n) {
    for (int i = 0; pins != NULL && i < n; i++)
        free_pins(pins[i].parts, pins[i].nparts);
    PyMem_Free(pins);
}

static int build_pins(Program *p, PyObject *specs, Pin **pins) { /* how many, or -1 */
    int n = (int)PyTuple_GET_SIZE(specs);
    Pin *made = PyMem_Calloc((size_t)n + 1, sizeof *made);
    if (made == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (build_pin(p, &made[i], PyTuple_GET_ITEM(specs, i)) < 0) {
            free_pins(made, n);
            return -1;
        }
    }
    *pins = made;
    return n;
}

/* ---- building checks ---------------------------------------------------------------------------------------------
 */

static int build_dims(int64_t *out, PyObject *dims, int rank) {
    for (int i = 0; i < rank; i++) {
        PyObject *d = PyTuple_GET_ITEM(dims, i);
        out[i] = d == Py_None ? DC_ANY_SIZE : PyLong_AsLongLong(d);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static int build_tensor(Program *p, Check *c, PyObject *operands) {
    PyObject *type, *sizes, *strides;
    int dtype, index, grad, rank, in_memory;
    unsigned long long keys;
    if (!PyArg_ParseTuple(operands, "OiiKiiOOi:TENSOR", &type, &dtype, &index, &keys, &grad, &rank, &sizes, &strides,
                          &in_memory))
        return -1;
    Pin pin = {0};
    if (build_pin(p, &pin, type) < 0) return -1;
    if ((sizes != Py_None && PyTuple_GET_SIZE(sizes) != rank) ||
        (strides != Py_None && PyTuple_GET_SIZE(strides) != rank)) {
        PyErr_SetString(PyExc_ValueError, "sizes and strides must be as many as dimensions");
        return -1;
    }
    TensorSpec *t = c->data = PyMem_Calloc(1, sizeof *t + 2 * (size_t)rank * sizeof(int64_t));
    if (t == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    t->type = (PyTypeObject *)pin.object;
    t->keys = keys, t->dtype = dtype, t->device_index = index, t->rank = rank, t->requires_grad = (char)grad;
    t->has_sizes = sizes != Py_None, t->has_strides = strides != Py_None;
    t->in_memory = (char)(in_memory && rank <= 5 && t->has_sizes && t->has_strides);
    if (t->has_sizes && build_dims(t->dims, sizes, rank) < 0) return -1;
    return t->has_strides ? build_dims(t->dims + rank, strides, rank) : 0;
}

static int build_operands(Program *p, Check *c, PyObject *operands) {
    PyObject *a = PyTuple_GET_SIZE(operands) > 0 ? PyTuple_GET_ITEM(operands, 0) : NULL;
    switch (c->op) {
    case OP_TYPE:
    case OP_IS:
    case OP_VALUE:
    case OP_CODE:
        return c->n = build_pins(p, operands, &c->pins);
    case OP_KEYS:
        return c->n = build_pins(p, a, &c->pins);
    case OP_SET:
        c->key = keep(p, a);
        return c->key == NULL ? -1 : (c->n = build_pins(p, PyTuple_GET_ITEM(operands, 1), &c->pins));
    case OP_LENGTH:
        c->number = PyLong_AsLongLong(a);
        return PyErr_Occurred() ? -1 : 0;
    case OP_HASKEY:
        c->key = keep(p, a);
        c->number = c->key == NULL ? -1 : PyObject_Hash(a);
        c->n = (int)PyLong_AsLong(PyTuple_GET_ITEM(operands, 1));
        return PyErr_Occurred() ? -1 : 0;
    case OP_TENSOR:
        return build_tensor(p, c, operands);
    case OP_MARKS:
        return (c->key = keep(p, a)) == NULL ? -1 : 0;
    case OP_EXPRESSION: {
        PyObject *n = expression_steps(a, (ExprStep **)&c->data);
        c->n = n == NULL ? -1 : (int)PyLong_AsLong(n);
        Py_XDECREF(n);
        return c->n;
    }
    }
    return 0;
}

static int build_check(Program *p, Check *c, PyObject *op, PyObject *operands, PyObject *guard) {
    c->op = (int)PyLong_AsLong(op);
    if (PyErr_Occurred()) return -1;
    if (c->op < 0 || c->op >= OP_COUNT || !PyTuple_Check(operands)) {
        PyErr_SetString(PyExc_ValueError, "unknown check");
        return -1;
    }
    if (c->op >= OP_TENSOR && (c->guard = keep(p, guard)) == NULL) return -1; /* these may end in Python */
    return build_operands(p, c, operands);
}

static void free_check(Check *c) {
    free_pins(c->pins, c->n);
    PyMem_Free(c->data);
}

/* ---- building nodes ----------------------------------------------------------------------------------------------
 */

static int build_key(Program *p, Node *nd, PyObject *operands) {
    PyObject *a = PyTuple_GET_SIZE(operands) > 0 ? PyTuple_GET_ITEM(operands, 0) : NULL;
    switch (nd->accessor) {
    case ACC_LOCAL:
    case ACC_FREE:
    case ACC_ITEM:
    case ACC_KEYAT:
    case ACC_VALUEAT:
        nd->index = (int32_t)PyLong_AsLong(a);
        return PyErr_Occurred() ? -1 : 0;
    case ACC_CAPTURED:
    case ACC_PINNED: {
        Pin pin = {0};
        if (build_pin(p, &pin, a) < 0) return -1;
        nd->key = pin.object;
        return 0;
    }
    case ACC_GLOBAL:
    case ACC_BUILTIN:
    case ACC_MODULE:
    case ACC_DICTATTR:
    case ACC_KEY:
    case ACC_TYPEATTR:
    case ACC_SLOTATTR:
    case ACC_CATTR:
        nd->key = keep(p, a);
        nd->hash = nd->key == NULL ? -1 : PyObject_Hash(nd->key);
        p->getters |= nd->accessor == ACC_CATTR;
        return nd->hash == -1 ? -1 : 0;
    }
    return 0;
}

static int build_nodes(Program *p, PyObject *specs, Node **nodes, int *count);

static int build_node(Program *p, Node *nd, PyObject *spec) {
    int accessor, slot;
    PyObject *operands, *checks, *kids;
    if (!PyArg_ParseTuple(spec, "iO!O!O!i:node", &accessor, &PyTuple_Type, &operands, &PyTuple_Type, &checks,
                          &PyTuple_Type, &kids, &slot))
        return -1;
    if (accessor < 0 || accessor >= ACC_COUNT || slot >= p->nslots) {
        PyErr_SetString(PyExc_ValueError, "unknown accessor or slot");
        return -1;
    }
    nd->accessor = (uint8_t)accessor;
    nd->slot = slot;
    if (build_key(p, nd, operands) < 0) return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(checks);
    nd->checks = PyMem_Calloc((size_t)n + 1, sizeof *nd->checks);
    if (nd->checks == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *op, *args, *guard;
        nd->nchecks++;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(checks, i), "OOO:check", &op, &args, &guard) ||
            build_check(p, &nd->checks[i], op, args, guard) < 0)
            return -1;
    }
    return build_nodes(p, kids, &nd->kids, &nd->nkids);
}

static int build_nodes(Program *p, PyObject *specs, Node **nodes, int *count) {
    Py_ssize_t n = PyTuple_GET_SIZE(specs);
    *nodes = PyMem_Calloc((size_t)n + 1, sizeof **nodes);
    if (*nodes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        ++*count;
        if (!PyTuple_Check(PyTuple_GET_ITEM(specs, i))) {
            PyErr_SetString(PyExc_TypeError, "a node is a tuple");
            return -1;
        }
        if (build_node(p, &(*nodes)[i], PyTuple_GET_ITEM(specs, i)) < 0) return -1;
    }
    return 0;
}

static void free_nodes(Node *nodes, int n) {
    for (int i = 0; nodes != NULL && i < n; i++) {
        for (int k = 0; nodes[i].checks != NULL && k < nodes[i].nchecks; k++)
            free_check(&nodes[i].checks[k]);
        PyMem_Free(nodes[i].checks);
        free_nodes(nodes[i].kids, nodes[i].nkids);
    }
    PyMem_Free(nodes);
}

/* ---- groups: what the shortcut skips together --------------------------------------------------------------------
 */

#define WORTH_IT 4 /* nodes */

static int count_nodes(const Node *nd) {
    int n = 1;
    for (int i = 0; i < nd->nkids; i++)
        n += count_nodes(&nd->kids[i]);
    return n;
}

static void number_nodes(Group *g, Node *nd, int up) {
    nd->up = up;
    nd->memo = g->nvals++;
    if (nd->slot >= 0) {
        g->slots[g->nslots] = nd->slot;
        g->slot_vals[g->nslots++] = nd->memo;
    }
    for (int i = 0; i < nd->nkids; i++)
        number_nodes(g, &nd->kids[i], nd->memo);
}

static int group_add(Program *p, Group *g, Node *nd) {
    if (g->nodes == NULL) {
        g->nodes = PyMem_Calloc((size_t)p->nnodes, sizeof *g->nodes);
        g->slots = PyMem_Calloc((size_t)p->nslots + 1, sizeof *g->slots);
        g->slot_vals = PyMem_Calloc((size_t)p->nslots + 1, sizeof *g->slot_vals);
        if (g->nodes == NULL || g->slots == NULL || g->slot_vals == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    g->nodes[g->nnodes++] = nd;
    number_nodes(g, nd, -1);
    return 0;
}

/* Arguments and free variables with enough below them are a group each; all that doesn't start at them is one. */
static int build_groups(Program *p) {
    int shared = 0;
    p->groups = PyMem_Calloc((size_t)p->nnodes + 1, sizeof *p->groups);
    p->direct = PyMem_Calloc((size_t)p->nnodes + 1, sizeof *p->direct);
    if (p->groups == NULL || p->direct == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < p->nnodes; i++)
        if (p->nodes[i].accessor > ACC_FREE) shared += count_nodes(&p->nodes[i]);
    Group *common = shared >= WORTH_IT ? &p->groups[p->ngroups++] : NULL;
    for (int i = 0; i < p->nnodes; i++) {
        Node *nd = &p->nodes[i];
        if (nd->accessor > ACC_FREE && common != NULL) {
            if (group_add(p, common, nd) < 0) return -1;
        } else if (nd->accessor <= ACC_FREE && count_nodes(nd) >= WORTH_IT) {
            if (group_add(p, &p->groups[p->ngroups++], nd) < 0) return -1;
        } else {
            p->direct[p->ndirect++] = nd;
        }
    }
    return 0;
}

/* ---- building the rest -------------------------------------------------------------------------------------------
 */

static int build_read(Program *p, AmbientRead *r, PyObject *spec) {
    PyObject *address, *argument, *expected;
    if (!PyArg_ParseTuple(spec, "iOOO:read", &r->signature, &address, &argument, &expected)) return -1;
    if (r->signature == READ_GLOBAL) {
        if (!PyDict_Check(address) || keep(p, address) == NULL || keep(p, argument) == NULL ||
            keep(p, expected) == NULL)
            return -1;
        r->address = address, r->key = argument, r->expected = (uintptr_t)expected;
        r->hash = PyObject_Hash(argument);
        return r->hash == -1 ? -1 : 0;
    }
    r->address = PyLong_AsVoidPtr(address);
    r->argument = (int)PyLong_AsLong(argument);
    r->expected = PyLong_AsUnsignedLongLong(expected);
    return PyErr_Occurred() ? -1 : 0;
}

static int build_ambient(Program *p, PyObject *spec) {
    PyObject *reads, *guard;
    if (spec == Py_None) return 0;
    if (!PyArg_ParseTuple(spec, "O!iO:ambient", &PyTuple_Type, &reads, &p->ambient_slow, &guard)) return -1;
    p->ambient = keep(p, guard);
    p->nreads = (int)PyTuple_GET_SIZE(reads);
    p->reads = PyMem_Calloc((size_t)p->nreads + 1, sizeof *p->reads);
    if (p->reads == NULL) PyErr_NoMemory();
    if (p->reads == NULL || p->ambient == NULL) return -1;
    for (int i = 0; i < p->nreads; i++)
        if (build_read(p, &p->reads[i], PyTuple_GET_ITEM(reads, i)) < 0) return -1;
    return 0;
}

static int *build_slots(const Program *p, PyObject *numbers, int *count) {
    int n = (int)PyTuple_GET_SIZE(numbers), *slots = PyMem_Calloc((size_t)n + 1, sizeof *slots);
    if (slots == NULL) PyErr_NoMemory();
    for (int i = 0; slots != NULL && i < n; i++) {
        slots[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(numbers, i));
        if (slots[i] < 0 || slots[i] >= p->nslots) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such slot");
            PyMem_Free(slots);
            return NULL;
        }
    }
    *count = n;
    return slots;
}

static int build_relation(Program *p, Relation *r, PyObject *spec) {
    PyObject *op, *operands, *numbers, *guard;
    if (!PyArg_ParseTuple(spec, "OOO!O:relation", &op, &operands, &PyTuple_Type, &numbers, &guard)) return -1;
    r->slots = build_slots(p, numbers, &r->nslots);
    if (r->slots == NULL || build_check(p, &r->check, op, operands, guard) < 0) return -1;
    if (r->check.op == OP_EXPRESSION) {
        const ExprStep *steps = r->check.data;
        for (int i = 0; i < r->check.n; i++) {
            if (steps[i].slot >= (r->nslots > 0 ? r->nslots : 1)) {
                PyErr_SetString(PyExc_ValueError, "an expression speaks of more values than it has");
                return -1;
            }
        }
    }
    if (r->check.op != OP_DISTINCT) return 0;
    uintptr_t *last = r->check.data = PyMem_Calloc((size_t)r->nslots + 1, sizeof *last);
    if (last == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < r->nslots; i++)
        last[i] = 1; /* no object's address */
    return 0;
}

static int build_program(Program *p, PyObject *spec) {
    PyObject *ambient, *nodes, *relations, *captures;
    if (PyTuple_GET_SIZE(spec) == 0) return 0;
    if (!PyArg_ParseTuple(spec, "OO!O!iO!:GuardProgram", &ambient, &PyTuple_Type, &nodes, &PyTuple_Type, &relations,
                          &p->nslots, &PyTuple_Type, &captures))
        return -1;
    if (build_ambient(p, ambient) < 0 || build_nodes(p, nodes, &p->nodes, &p->nnodes) < 0 || build_groups(p) < 0)
        return -1;
    p->captures = build_slots(p, captures, &p->ncaptures);
    p->relations = PyMem_Calloc((size_t)PyTuple_GET_SIZE(relations) + 1, sizeof *p->relations);
    if (p->relations == NULL) PyErr_NoMemory();
    if (p->captures == NULL || p->relations == NULL) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(relations); i++) {
        p->nrelations++;
        if (build_relation(p, &p->relations[i], PyTuple_GET_ITEM(relations, i)) < 0) return -1;
    }
    return 0;
}

/* ---- running -----------------------------------------------------------------------------------------------------
 */

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
    Walk w = {p, gf, slots, NULL, p->busy};
    Py_INCREF(p);
    p->busy++;
    p->checks++;
    int r = run_checks(p, &w);
    if (r == 1 && p->dead) r = 0; /* a Python check let the collector run */
    p->busy--;
    p->passes += r == 1;
    if (r == 1 && captured != NULL && p->ncaptures > 0 && (*captured = captured_tuple(p, slots)) == NULL) r = -1;
    for (int i = 0; i < p->nslots; i++)
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
    if (strcmp(name, "tensors") == 0) return tensors_forced_off = !value, 1;
    return 0;
}

/* ---- the Python object -------------------------------------------------------------------------------------------
 */

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"spec", NULL};
    PyObject *spec;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:GuardProgram", names, &PyTuple_Type, &spec)) return NULL;
    Program *p = (Program *)type->tp_alloc(type, 0);
    if (p == NULL) return NULL;
    p->keep = PyList_New(0);
    p->refs = PyDict_New();
    p->life = PyCapsule_New(&dead_ref_method, NULL, NULL);
    if (p->life != NULL && PyCapsule_SetContext(p->life, p) == 0)
        p->watcher = PyCFunction_New(&dead_ref_method, p->life);
    if (p->keep == NULL || p->refs == NULL || p->watcher == NULL || build_program(p, spec) < 0) Py_CLEAR(p);
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
    free_nodes(p->nodes, p->nnodes);
    for (int i = 0; i < p->nrelations; i++) {
        free_check(&p->relations[i].check);
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
        nodes += count_nodes(&p->nodes[i]);
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
    return memo_module_init();
}
