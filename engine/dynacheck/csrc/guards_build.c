/* Building a guard program from its specification (guards/program.py), and what it holds. */
#include "guards.h"

static PyObject *dead_ref(PyObject *life, PyObject *ref);
static PyMethodDef dead_ref_method = {"guarded_object_died", dead_ref, METH_O, NULL};

/* ---- holding objects ----------------------------------------------------------------------------------- */

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

static int watch_deaths(Program *p) {
    p->life = PyCapsule_New(&dead_ref_method, NULL, NULL);
    if (p->life == NULL || PyCapsule_SetContext(p->life, p) < 0) return -1;
    p->watcher = PyCFunction_New(&dead_ref_method, p->life);
    return p->watcher == NULL ? -1 : 0;
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

/* ---- building checks ----------------------------------------------------------------------------------- */

static int build_dims(int64_t *out, PyObject *dims, int rank) {
    for (int i = 0; i < rank; i++) {
        PyObject *d = PyTuple_GET_ITEM(dims, i);
        out[i] = d == Py_None ? DC_ANY_SIZE : PyLong_AsLongLong(d);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static void spec_put(TensorSpec *t) {
    if (--t->refs == 0) PyMem_Free(t);
}

static int same_spec(const TensorSpec *a, const TensorSpec *b) {
    return a->type == b->type && a->keys == b->keys && a->dtype == b->dtype && a->device_index == b->device_index &&
           a->rank == b->rank && a->requires_grad == b->requires_grad && a->has_sizes == b->has_sizes &&
           a->has_strides == b->has_strides && a->in_memory == b->in_memory && a->layout == b->layout &&
           memcmp(a->dims, b->dims, 2 * (size_t)a->rank * sizeof *a->dims) == 0;
}

/* Layers repeat, and a check of their parameters reads less memory when equal ones have one description. */
static TensorSpec *shared_spec(Program *p, TensorSpec *t) {
    int n = p->nspecs < MAX_SPECS ? p->nspecs : MAX_SPECS;
    for (int i = 0; i < n; i++)
        if (same_spec(p->specs[i], t)) {
            PyMem_Free(t);
            p->specs[i]->refs++;
            return p->specs[i];
        }
    p->specs[p->nspecs++ % MAX_SPECS] = t;
    return t;
}

static int build_tensor(Program *p, Check *c, PyObject *operands) {
    PyObject *type, *sizes, *strides;
    int dtype, index, grad, rank, layout;
    unsigned long long keys;
    if (!PyArg_ParseTuple(operands, "OiiKiiOOi:TENSOR", &type, &dtype, &index, &keys, &grad, &rank, &sizes, &strides,
                          &layout))
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
    t->layout = layout;
    t->in_memory = (char)(layout == PLAIN && rank <= 5 && t->has_sizes && t->has_strides);
    t->refs = 1;
    if (t->has_sizes && build_dims(t->dims, sizes, rank) < 0) return -1;
    if (t->has_strides && build_dims(t->dims + rank, strides, rank) < 0) return -1;
    c->data = shared_spec(p, t);
    return 0;
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
        c->number = PyLong_AsLongLong(PyTuple_GET_ITEM(operands, 2));
        return c->key == NULL ? -1 : (c->n = build_pins(p, PyTuple_GET_ITEM(operands, 1), &c->pins));
    case OP_LENGTH:
    case OP_NUMBER:
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
    case OP_DETAILS:
    case OP_OVERLAP:
        return (c->key = keep(p, a)) == NULL ? -1 : 0;
    case OP_FLATTEN:
        return (c->key = keep(p, operands)) == NULL ? -1 : 0;
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

void check_free(Check *c) {
    free_pins(c->pins, c->n);
    if (c->op == OP_TENSOR && c->data != NULL)
        spec_put(c->data);
    else
        PyMem_Free(c->data);
}

/* ---- building nodes ------------------------------------------------------------------------------------ */

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
    case ACC_CONVERTED:
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

void nodes_free(Node *nodes, int n) {
    for (int i = 0; nodes != NULL && i < n; i++) {
        for (int k = 0; nodes[i].checks != NULL && k < nodes[i].nchecks; k++)
            check_free(&nodes[i].checks[k]);
        PyMem_Free(nodes[i].checks);
        nodes_free(nodes[i].kids, nodes[i].nkids);
    }
    PyMem_Free(nodes);
}

/* ---- groups: what the shortcut skips together ---------------------------------------------------------- */

#define WORTH_IT 4 /* nodes */

int node_count(const Node *nd) {
    int n = 1;
    for (int i = 0; i < nd->nkids; i++)
        n += node_count(&nd->kids[i]);
    return n;
}

static void number_nodes(Group *g, Node *nd, int up) {
    nd->up = up;
    nd->memo = g->nvals;
    g->all[g->nvals++] = nd;
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
    Node **all = PyMem_Realloc(g->all, (size_t)(g->nvals + node_count(nd)) * sizeof *all);
    if (all == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    g->all = all;
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
        if (p->nodes[i].accessor > ACC_FREE) shared += node_count(&p->nodes[i]);
    Group *common = shared >= WORTH_IT ? &p->groups[p->ngroups++] : NULL;
    for (int i = 0; i < p->nnodes; i++) {
        Node *nd = &p->nodes[i];
        if (nd->accessor > ACC_FREE && common != NULL) {
            if (group_add(p, common, nd) < 0) return -1;
        } else if (nd->accessor <= ACC_FREE && node_count(nd) >= WORTH_IT) {
            if (group_add(p, &p->groups[p->ngroups++], nd) < 0) return -1;
        } else {
            p->direct[p->ndirect++] = nd;
        }
    }
    return 0;
}

/* ---- building the rest --------------------------------------------------------------------------------- */

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

/* Room for the extents of the tensors; behind it, for each pair of them, whether they overlap. */
static int build_overlap(Relation *r) {
    size_t n = (size_t)r->nslots;
    TensorExtent *extents = r->check.data = PyMem_Calloc(n + 1, sizeof *extents + n);
    if (extents == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(r->check.key); i++) {
        int a, b;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(r->check.key, i), "ii:OVERLAP", &a, &b)) return -1;
        if (a < 0 || a >= b || b >= r->nslots) {
            PyErr_SetString(PyExc_ValueError, "pairs of overlapping tensors are positions (i < j) among them");
            return -1;
        }
        ((char *)(extents + n))[(size_t)a * n + (size_t)b] = 1;
    }
    return 0;
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
    if (r->check.op == OP_OVERLAP) return build_overlap(r);
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

int program_build(Program *p, PyObject *spec) {
    PyObject *ambient, *nodes, *relations, *captures;
    p->keep = PyList_New(0);
    p->refs = PyDict_New();
    if (p->keep == NULL || p->refs == NULL || watch_deaths(p) < 0) return -1;
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
