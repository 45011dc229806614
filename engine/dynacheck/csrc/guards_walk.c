/* The walk: from the frame's values along the nodes of a program, running their checks. Runs no user code. */
#include "guards.h"

/* ---- objects to compare with --------------------------------------------------------------------------- */

/* `constant` is of a builtin type; so is `value`, once it is of the same type. */
int constant_equal(PyObject *constant, PyObject *value) {
    if (constant == value) return 1;
    PyTypeObject *type = Py_TYPE(constant);
    if (Py_TYPE(value) != type) return 0;
    if (type == &PyFloat_Type) {
        double a = PyFloat_AS_DOUBLE(constant), b = PyFloat_AS_DOUBLE(value);
        return memcmp(&a, &b, sizeof a) == 0;
    }
    if (type == &PyComplex_Type) {
        Py_complex a = PyComplex_AsCComplex(constant), b = PyComplex_AsCComplex(value);
        return memcmp(&a.real, &b.real, sizeof a.real) == 0 && memcmp(&a.imag, &b.imag, sizeof a.imag) == 0;
    }
    if (PyTuple_Check(constant)) {
        Py_ssize_t n = PyTuple_GET_SIZE(constant);
        if (PyTuple_GET_SIZE(value) != n) return 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            int r = constant_equal(PyTuple_GET_ITEM(constant, i), PyTuple_GET_ITEM(value, i));
            if (r != 1) return r;
        }
        return 1;
    }
    if (type == &PyDict_Type) {
        PyObject *key, *then;
        Py_ssize_t pos = 0;
        int r = PyDict_GET_SIZE(value) == PyDict_GET_SIZE(constant);
        while (r == 1 && PyDict_Next(constant, &pos, &key, &then)) {
            PyObject *now = PyDict_GetItemWithError(value, key);
            r = now != NULL ? constant_equal(then, now) : PyErr_Occurred() ? -1 : 0;
        }
        return r;
    }
    if (type == &PySlice_Type) {
        PySliceObject *a = (PySliceObject *)constant, *b = (PySliceObject *)value;
        int r = constant_equal(a->start, b->start);
        if (r == 1) r = constant_equal(a->stop, b->stop);
        return r == 1 ? constant_equal(a->step, b->step) : r;
    }
    return PyObject_RichCompareBool(value, constant, Py_EQ);
}

static int parts_match(const Pin *pin, PyObject *value) {
    if ((PyObject *)Py_TYPE(value) != pin->object) return 0;
    for (int i = 0; i < pin->nparts; i++) {
        PyObject *part = PyObject_GetAttr(value, PyTuple_GET_ITEM(pin->name, i));
        if (part == NULL) return -1;
        int r = pin_matches(&pin->parts[i], part);
        Py_DECREF(part);
        if (r != 1) return r;
    }
    return 1;
}

int pin_matches(const Pin *pin, PyObject *value) {
    switch (pin->how) {
    case PIN_OBJECT:
        return value == pin->object;
    case PIN_CONST:
        return constant_equal(pin->object, value);
    case PIN_DESCRIPTOR: {
        if ((PyObject *)Py_TYPE(value) != pin->object) return 0;
        PyDescrObject *d = (PyDescrObject *)value;
        return (PyObject *)d->d_type == pin->owner && constant_equal(pin->name, d->d_name);
    }
    case PIN_PARTS:
        return parts_match(pin, value);
    case PIN_ANY:
        return 1;
    }
    return 0;
}

/* ---- accessors ----------------------------------------------------------------------------------------- */

PyObject *instance_dict(PyObject *obj) {
    if (PyType_Check(obj)) return NULL;
    PyObject **at = _PyObject_GetDictPtr(obj);
    return at != NULL && *at != NULL && PyDict_CheckExact(*at) ? *at : NULL;
}

static PyObject *lookup(PyObject *dict, const Node *nd) {
    return dict == NULL ? NULL : _PyDict_GetItem_KnownHash(dict, nd->key, nd->hash);
}

/* An attribute whose descriptor is C code: new reference, or NULL without an exception when there is none. */
static PyObject *c_attribute(PyObject *obj, PyObject *name) {
    PyObject *d = _PyType_Lookup(Py_TYPE(obj), name);
    if (d == NULL || (Py_TYPE(d) != &PyGetSetDescr_Type && Py_TYPE(d) != &PyMemberDescr_Type)) return NULL;
    PyObject *value = Py_TYPE(d)->tp_descr_get(d, obj, (PyObject *)Py_TYPE(obj));
    if (value == NULL && (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
                          PyErr_ExceptionMatches(PyExc_RuntimeError)))
        PyErr_Clear();
    return value;
}

/* The key at a position of a dict's order: new reference; NULL without an exception: none. */
static PyObject *key_at(PyObject *dict, Py_ssize_t index) {
    PyObject *key, *value;
    if (!PyODict_Check(dict)) {
        Py_ssize_t pos = 0;
        for (Py_ssize_t i = 0; PyDict_Next(dict, &pos, &key, &value); i++)
            if (i == index) return Py_NewRef(key);
        return NULL;
    }
    PyObject *it = PyODict_Type.tp_iter(dict);
    if (it == NULL) return NULL;
    while ((key = PyIter_Next(it)) != NULL && index-- > 0)
        Py_DECREF(key);
    Py_DECREF(it);
    return key;
}

static PyObject *value_at(PyObject *dict, Py_ssize_t index) {
    PyObject *key, *value;
    if (PyODict_Check(dict)) {
        key = key_at(dict, index);
        if (key == NULL) return NULL;
        value = PyDict_GetItemWithError(dict, key);
        Py_DECREF(key);
        return Py_XNewRef(value);
    }
    Py_ssize_t pos = 0;
    for (Py_ssize_t i = 0; PyDict_Next(dict, &pos, &key, &value); i++)
        if (i == index) return Py_NewRef(value);
    return NULL;
}

static PyTypeObject *deque_type(void) { /* NULL: error */
    static PyTypeObject *deque;
    if (deque == NULL) {
        PyObject *module = PyImport_ImportModule("collections");
        if (module != NULL) deque = (PyTypeObject *)PyObject_GetAttrString(module, "deque");
        Py_XDECREF(module);
    }
    return deque;
}

int node_fetch(const Node *nd, PyObject *parent, const GuardFrame *gf, PyObject **value, int *owned) {
    PyObject *v = NULL;
    *owned = 0;
    switch (nd->accessor) {
    case ACC_LOCAL:
        v = gf_local(gf, nd->index);
        break;
    case ACC_FREE: {
        PyObject *closure = gf->func->func_closure;
        if (closure != NULL && nd->index < PyTuple_GET_SIZE(closure)) v = PyTuple_GET_ITEM(closure, nd->index);
        break;
    }
    case ACC_GLOBAL:
        v = lookup(gf->func->func_globals, nd);
        break;
    case ACC_BUILTIN:
        v = lookup(gf->func->func_builtins, nd);
        break;
    case ACC_MODULE:
        v = lookup(PyImport_GetModuleDict(), nd);
        break;
    case ACC_GLOBALS:
        v = gf->func->func_globals;
        break;
    case ACC_CAPTURED:
    case ACC_PINNED:
        v = nd->key;
        break;
    default:
        if (parent == NULL) {
            *value = NULL;
            return 0;
        }
    }
    switch (nd->accessor) {
    case ACC_DICTATTR:
        v = lookup(instance_dict(parent), nd);
        break;
    case ACC_TYPEOF:
        v = (PyObject *)Py_TYPE(parent);
        break;
    case ACC_TYPEATTR:
        if (PyType_Check(parent)) v = _PyType_Lookup((PyTypeObject *)parent, nd->key);
        break;
    case ACC_SLOTATTR:
    case ACC_CATTR:
        v = c_attribute(parent, nd->key);
        *owned = 1;
        break;
    case ACC_CELL:
        if (PyCell_Check(parent)) v = PyCell_GET(parent);
        break;
    case ACC_REFERENT:
        if (PyObject_TypeCheck(parent, &_PyWeakref_RefType)) v = ((PyWeakReference *)parent)->wr_object;
        if (v == Py_None) v = NULL;
        break;
    case ACC_ITEM:
        if (PyList_Check(parent)) {
            if (nd->index < PyList_GET_SIZE(parent)) v = PyList_GET_ITEM(parent, nd->index);
        } else if (PyTuple_Check(parent)) {
            if (nd->index < PyTuple_GET_SIZE(parent)) v = PyTuple_GET_ITEM(parent, nd->index);
        } else if (deque_type() != NULL && PyObject_TypeCheck(parent, deque_type())) {
            if (nd->index < Py_SIZE(parent)) v = deque_type()->tp_as_sequence->sq_item(parent, nd->index);
            *owned = 1;
        }
        break;
    case ACC_KEY:
        if (PyDict_Check(parent)) v = lookup(parent, nd);
        break;
    case ACC_KEYAT:
        if (PyDict_Check(parent)) v = key_at(parent, nd->index);
        *owned = 1;
        break;
    case ACC_VALUEAT:
        if (PyDict_Check(parent)) v = value_at(parent, nd->index);
        *owned = 1;
        break;
    case ACC_CONVERTED:
        v = hook_off_call(nd->key, &parent, 1);
        if (v == Py_None) Py_CLEAR(v);
        *owned = 1;
        break;
    }
    *value = v;
    return v == NULL && PyErr_Occurred() ? -1 : 0;
}

/* ---- checks -------------------------------------------------------------------------------------------- */

static Py_ssize_t builtin_length(PyObject *v) { /* -1: not a builtin container; -2: error */
    if (PyList_Check(v) || PyTuple_Check(v)) return Py_SIZE(v);
    if (PyDict_Check(v)) return PyDict_GET_SIZE(v);
    if (PyUnicode_Check(v)) return PyUnicode_GET_LENGTH(v);
    if (PyBytes_Check(v)) return PyBytes_GET_SIZE(v);
    if (PyAnySet_Check(v)) return PySet_GET_SIZE(v);
    if (PyByteArray_Check(v)) return PyByteArray_GET_SIZE(v);
    if (Py_TYPE(v) == &PyRange_Type) return PyObject_Size(v);
    PyTypeObject *deque = deque_type();
    if (deque == NULL) return -2;
    return PyObject_TypeCheck(v, deque) ? Py_SIZE(v) : -1;
}

static int keys_match(const Check *c, PyObject *dict) {
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    int r = 1;
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != c->n) return 0;
    if (!PyODict_Check(dict)) {
        for (int i = 0; r == 1 && i < c->n && PyDict_Next(dict, &pos, &key, &value); i++)
            r = pin_matches(&c->pins[i], key);
        return r;
    }
    PyObject *it = PyODict_Type.tp_iter(dict);
    if (it == NULL) return -1;
    for (int i = 0; r == 1 && i < c->n; i++) {
        key = PyIter_Next(it);
        r = key == NULL ? (PyErr_Occurred() ? -1 : 0) : pin_matches(&c->pins[i], key);
        Py_XDECREF(key);
    }
    Py_DECREF(it);
    return r;
}

static int set_matches(const Check *c, PyObject *set) {
    PyObject *item;
    if ((PyObject *)Py_TYPE(set) != c->key || PySet_GET_SIZE(set) != c->n) return 0;
    PyObject *it = PySet_Type.tp_iter(set); /* past an __iter__ of a subclass; a frozenset has the same */
    if (it == NULL) return -1;
    int r = 1, ordered = c->number != 0;
    for (int at = 0; r == 1 && (item = PyIter_Next(it)) != NULL; at++) {
        r = ordered && at < c->n ? pin_matches(&c->pins[at], item) : 0;
        for (int i = 0; r == 0 && !ordered && i < c->n; i++)
            r = pin_matches(&c->pins[i], item);
        Py_DECREF(item);
    }
    Py_DECREF(it);
    return PyErr_Occurred() ? -1 : r;
}

static PyObject *absent(void) { /* borrowed: sources.ABSENT */
    static PyObject *object;
    if (object == NULL) {
        PyObject *module = PyImport_ImportModule("dynacheck.sources");
        if (module != NULL) object = PyObject_GetAttrString(module, "ABSENT");
        Py_XDECREF(module);
    }
    return object;
}

static int python_check(PyObject *guard, PyObject *const *slots, const int *numbers, int n, Walk *w) {
    slots_own(w);
    PyObject *args = PyTuple_New(n), *none = absent();
    if (args == NULL || none == NULL) {
        Py_XDECREF(args);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        PyObject *v = numbers == NULL ? slots[i] : slot_value(slots[numbers[i]]);
        PyTuple_SET_ITEM(args, i, Py_NewRef(v == NULL ? none : v));
    }
    w->program->slow++;
    PyObject *verdict = hook_off_check(guard, args);
    Py_DECREF(args);
    if (verdict == NULL) return -1;
    int r = PyObject_IsTrue(verdict);
    Py_DECREF(verdict);
    return r;
}

static int has_key(const Check *c, PyObject *dict) {
    if (!PyDict_Check(dict)) return 0;
    int there = _PyDict_GetItem_KnownHash(dict, c->key, (Py_hash_t)c->number) != NULL;
    return PyErr_Occurred() ? -1 : there == c->n;
}

static int check_value(const Check *c, PyObject *v, Walk *w) {
    switch (c->op) {
    case OP_TYPE:
        return (PyObject *)Py_TYPE(v) == c->pins->object;
    case OP_IS:
    case OP_VALUE:
        return pin_matches(c->pins, v);
    case OP_LENGTH: {
        Py_ssize_t n = builtin_length(v);
        return n == -2 ? -1 : n == c->number;
    }
    case OP_KEYS:
        return keys_match(c, v);
    case OP_SET:
        return set_matches(c, v);
    case OP_HASKEY:
        return has_key(c, v);
    case OP_ABSENT:
        return 0;
    case OP_PRESENT:
        return 1;
    case OP_CODE:
        return PyFunction_Check(v) && ((PyFunctionObject *)v)->func_code == c->pins->object;
    case OP_TENSOR: {
        int r = tensor_matches(c->data, v);
        return r == 2 ? python_check(c->guard, &v, NULL, 1, w) : r;
    }
    case OP_MARKS:
        return marks_match(c->key, v);
    case OP_NUMBER: {
        int r = number_matches(c->number, v);
        return r == 2 ? python_check(c->guard, &v, NULL, 1, w) : r;
    }
    case OP_DETAILS:
        return details_match(c->key, v);
    case OP_FLATTEN: {
        slots_own(w);
        int r = flatten_matches(c->key, v);
        return r == 2 ? python_check(c->guard, &v, NULL, 1, w) : r;
    }
    }
    return python_check(c->guard, &v, NULL, 1, w);
}

int node_check(const Node *nd, PyObject *value, Walk *w) {
    for (int i = 0; i < nd->nchecks; i++) {
        const Check *c = &nd->checks[i];
        int r = value != NULL         ? check_value(c, value, w)
                : c->op == OP_PYCHECK ? python_check(c->guard, &value, NULL, 1, w)
                                      : c->op == OP_ABSENT;
        if (r != 1) return r;
    }
    return 1;
}

int node_walk(const Node *nd, PyObject *parent, Walk *w, int safe) {
    PyObject *value;
    int owned;
    if (node_fetch(nd, parent, w->gf, &value, &owned) < 0) return -1;
    if (!owned) Py_XINCREF(value); /* allocating may run the collector, and with it anything */
    struct Variant *record = w->record;
    if (record != NULL && !memo_note(nd, value, w, safe)) w->record = NULL;
    int r = node_check(nd, value, w);
    for (int i = 0; r == 1 && i < nd->nkids; i++) {
        const Node *kid = &nd->kids[i];
        r = node_walk(kid, value, w, w->record != NULL ? memo_safe(kid, value, safe) : 0);
    }
    if (w->record == NULL && record != NULL) w->record = record;
    if (nd->slot >= 0 && w->slots[nd->slot] == NULL)
        w->slots[nd->slot] = value, w->owns = 1;
    else
        Py_XDECREF(value);
    return r;
}

/* ---- relations ----------------------------------------------------------------------------------------- */

static int all_same(const Relation *r, PyObject *const *slots) {
    PyObject *first = slot_value(slots[r->slots[0]]);
    for (int i = 1; i < r->nslots; i++)
        if (slot_value(slots[r->slots[i]]) != first) return 0;
    return first != NULL;
}

static int all_distinct_table(const Relation *r, PyObject *const *slots) {
    size_t size = 16;
    while (size < 2 * (size_t)r->nslots)
        size *= 2;
    PyObject **table = PyMem_Calloc(size, sizeof *table);
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int distinct = 1;
    for (int i = 0; distinct && i < r->nslots; i++) {
        PyObject *v = slot_value(slots[r->slots[i]]);
        size_t at = (((uintptr_t)v >> 4) * 0x9E3779B97F4A7C15ull >> 20) & (size - 1);
        while (table[at] != NULL && table[at] != v)
            at = (at + 1) & (size - 1);
        distinct = v != NULL && table[at] == NULL;
        table[at] = v;
    }
    PyMem_Free(table);
    return distinct;
}

/* Depends on nothing but the addresses: those that passed last are remembered, and only what differs is compared. */
static int all_distinct(const Relation *r, PyObject *const *slots) {
    uintptr_t *last = r->check.data;
    int changed[4], n = 0;
    for (int i = 0; i < r->nslots && n <= 4; i++) {
        if ((uintptr_t)slot_value(slots[r->slots[i]]) != last[i]) {
            if (n < 4) changed[n] = i;
            n++;
        }
    }
    if (n > 4) {
        int distinct = all_distinct_table(r, slots);
        if (distinct == 1)
            for (int i = 0; i < r->nslots; i++)
                last[i] = (uintptr_t)slot_value(slots[r->slots[i]]);
        return distinct;
    }
    for (int k = 0; k < n; k++) {
        PyObject *v = slot_value(slots[r->slots[changed[k]]]);
        if (v == NULL) return 0;
        for (int i = 0; i < r->nslots; i++)
            if (slot_value(slots[r->slots[i]]) == v && i != changed[k]) return 0;
    }
    for (int k = 0; k < n; k++)
        last[changed[k]] = (uintptr_t)slot_value(slots[r->slots[changed[k]]]);
    return 1;
}

static int overlap_as_then(const Relation *r, PyObject *const *slots) { /* 2: Python has to decide */
    TensorExtent *extents = r->check.data;
    const char *then = (const char *)(extents + r->nslots);
    for (int i = 0; i < r->nslots; i++) {
        PyObject *v = slot_value(slots[r->slots[i]]);
        int known = v == NULL ? 0 : tensor_extent(v, &extents[i]);
        if (known != 1) return known;
    }
    for (int i = 0; i < r->nslots; i++) {
        const TensorExtent *a = &extents[i];
        for (const TensorExtent *b = a + 1; b < extents + r->nslots; b++) {
            int now = a->storage != NULL && a->storage == b->storage && a->start < b->end && b->start < a->end;
            if (now != then[i * r->nslots + (b - extents)]) return 0;
        }
    }
    return 1;
}

int relation_check(const Relation *r, Walk *w) {
    switch (r->check.op) {
    case OP_SAME:
        return all_same(r, w->slots);
    case OP_DISTINCT:
        return all_distinct(r, w->slots);
    case OP_EXPRESSION: {
        int verdict = expression_holds(r->check.data, r->check.n, w->slots, r->slots);
        if (verdict != 2) return verdict;
        break;
    }
    case OP_OVERLAP: {
        int verdict = overlap_as_then(r, w->slots);
        if (verdict != 2) return verdict;
    }
    }
    return python_check(r->check.guard, w->slots, r->slots, r->nslots, w);
}
