/* The shortcut: top nodes whose state is unchanged since they last passed are not walked again.
 *
 * The full walk records, in its order, what its verdict rested on; the next check replays the records from the top:
 * the same dict of the same object with the same version has the same contents, so that what it holds is alive and is
 * what it was. Versions are unique over the life of the process (3.11's version tags; later a counter kept by a dict
 * watcher), so nothing is kept alive and a reused address never passes. What has no version (list items, cells,
 * slots, an object's type, a tensor's metadata, a function's code) is looked at every time; what isn't a plain
 * pointer read (getters, Python checks) is walked every time. Any difference leads to the full walk, except in dict
 * entries that nobody looks below: those are compared again in place.
 */
#include "guards.h"

#define MAX_VARIANTS 16
#define MAX_MISSES 32          /* in a row; then checks are walked without recording, */
#define MAX_PAUSE 4096         /* twice as many each time */
#define WALKED ((PyObject *)1) /* as a value: of a node that is walked every time */

int memo_enabled = 1;

void memo_force(int value) {
    memo_enabled = value && versions_work;
}

/* ---- records ------------------------------------------------------------------------------------------- */

enum {
    REC_OBJECT,    /* an object's type, dict and the dict's version */
    REC_DICT,      /* a dict's version */
    REC_NAMESPACE, /* the dict that a GLOBAL, BUILTIN or MODULE node looks into, and its version */
    REC_TYPE,      /* an object's type */
    REC_CLASS,     /* a class's version: its attributes and those of its bases */
    REC_FETCH,     /* the node's value is still that object */
    REC_CHECKS,    /* the node's checks pass for the value */
    REC_TENSOR,    /* the same, for the usual guards on a tensor without marks, whose dict is watched */
};

typedef struct {
    int16_t kind;
    int16_t dict_at; /* which word of the value points to its dict; 0: not known */
    int32_t place;   /* of the node, among those of its group */
    PyObject *value; /* of the node, */
    union {
        PyTypeObject *type;
        TensorSpec *tensor;
    };
    PyObject *dict;
#if !DC_PY311
    Watch *watch;
#endif
    uint64_t version;
} Record;

typedef struct Variant {
    PyObject *key; /* an address only */
    int valid, failed;
    int nrecords, capacity, nagain, again_capacity;
    Record *records; /* by place */
    Node *const *nodes;
    const Node **again; /* walked every time */
    PyObject *values[];
} Variant;

/* Where an object keeps its dict, without making one: NULL when it has none yet. */
static PyObject *peek_dict(PyObject *obj) {
    PyTypeObject *type = Py_TYPE(obj);
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        PyObject *dict = ((PyObject **)obj)[-3];
#if !DC_PY311 && !DC_PY313_UP
        if ((uintptr_t)dict & 1) return NULL; /* inline values */
#endif
        return dict;
    }
    if (type->tp_dictoffset > 0) return *(PyObject **)((char *)obj + type->tp_dictoffset);
    PyObject **at = _PyObject_GetDictPtr(obj);
    return at == NULL ? NULL : *at;
}

static int reserve(void **array, int *capacity, int used, size_t item) {
    if (used < *capacity) return 0;
    int more = *capacity == 0 ? 16 : *capacity * 2;
    void *bigger = PyMem_Realloc(*array, (size_t)more * item);
    if (bigger == NULL) return -1;
    *array = bigger, *capacity = more;
    return 0;
}

#define NODE_OF(v, r) ((v)->nodes[(r)->place])

#if DC_PY311
#define WATCH_OF(r) ((r)->dict)
#else
#define WATCH_OF(r) ((r)->watch)
#endif

static void variant_empty(Variant *v) {
    for (int i = 0; i < v->nrecords; i++)
        if (WATCH_OF(&v->records[i]) != NULL) watch_put(WATCH_OF(&v->records[i]));
    v->nrecords = v->nagain = v->valid = v->failed = 0;
}

static void variant_free(Variant *v) {
    if (v == NULL) return;
    variant_empty(v);
    PyMem_Free(v->records);
    PyMem_Free(v->again);
    PyMem_Free(v);
}

static Record *add(Variant *v, int kind, const Node *nd) { /* NULL: no memory */
    if (reserve((void **)&v->records, &v->capacity, v->nrecords, sizeof(Record)) < 0) {
        v->failed = 1;
        return NULL;
    }
    Record *r = &v->records[v->nrecords++];
    *r = (Record){.kind = kind, .place = nd->memo, .value = v->values[nd->memo]};
    return r;
}

static int dict_word(PyTypeObject *type) {
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) return -3;
    Py_ssize_t at = type->tp_dictoffset / (Py_ssize_t)sizeof(PyObject *);
    return at > 0 && at <= INT16_MAX ? (int)at : 0;
}

static int record_dict(Record *r, PyObject *dict) { /* 0: it can't be watched */
    Watch *w = dict == NULL ? NULL : watch_get(dict);
    if (WATCH_OF(r) != NULL) watch_put(WATCH_OF(r));
#if !DC_PY311
    r->watch = w;
#endif
    r->dict = w == NULL ? NULL : dict;
    r->version = w == NULL ? 0 : watch_version(w);
    return w != NULL || dict == NULL;
}

static void add_dict(Variant *v, int kind, const Node *nd, PyObject *obj, PyObject *dict) {
    Record *r = add(v, kind, nd);
    if (r == NULL) return;
    r->type = obj == NULL ? NULL : Py_TYPE(obj);
    if (!record_dict(r, dict)) v->failed = 1;
    if (kind == REC_OBJECT && dict != NULL) r->dict_at = (int16_t)dict_word(r->type);
}

static void add_type(Variant *v, const Node *nd, PyTypeObject *type) {
    Record *r = add(v, REC_TYPE, nd);
    if (r != NULL) r->type = type;
}

static void add_class(Variant *v, const Node *nd, PyTypeObject *cls) {
    Record *r = add(v, REC_CLASS, nd);
    if (r != NULL) r->version = cls->tp_version_tag;
}

/* Marks are attributes: a tensor that has none keeps having none while its dict stays as it is. 0: it has some. */
static int record_attributes(Record *r, const Node *nd, PyObject *tensor) {
    PyObject *dict = peek_dict(tensor);
    r->dict_at = (int16_t)dict_word(Py_TYPE(tensor));
    if (has_no_attributes(tensor)) return record_dict(r, NULL);
    int marked = dict == NULL || r->dict_at == 0 || !PyDict_CheckExact(dict);
    if (!marked && nd->nchecks == 2) marked = has_marks(nd->checks[1].key, dict);
    if (marked < 0) PyErr_Clear();
    return marked == 0 && record_dict(r, dict);
}

/* The node's checks; those of an ordinary tensor guard can be reached from the record. */
static void add_checks(Variant *v, const Node *nd, PyObject *value) {
    const Check *c = nd->checks;
    int usual = c[0].op == OP_TENSOR && (nd->nchecks == 1 || (nd->nchecks == 2 && c[1].op == OP_MARKS));
    Record *r = add(v, REC_CHECKS, nd);
    if (r == NULL || !usual || !record_attributes(r, nd, value)) return;
    r->kind = REC_TENSOR;
    r->tensor = c[0].data;
}

static PyObject *namespace_of(const Node *nd, const GuardFrame *gf) {
    switch (nd->accessor) {
    case ACC_GLOBAL:
    case ACC_GLOBALS:
        return gf->func->func_globals;
    case ACC_BUILTIN:
        return gf->func->func_builtins;
    }
    return PyImport_GetModuleDict();
}

static void add_namespace(Variant *v, const Node *nd, const GuardFrame *gf) {
    PyObject *dict = namespace_of(nd, gf);
    for (int i = 0; i < v->nrecords; i++)
        if (v->records[i].kind == REC_NAMESPACE && v->records[i].dict == dict &&
            NODE_OF(v, &v->records[i])->accessor == nd->accessor)
            return;
    add_dict(v, REC_NAMESPACE, nd, NULL, dict);
}

/* ---- recording ----------------------------------------------------------------------------------------- */

static int is_namespace(int accessor) {
    return accessor == ACC_GLOBAL || accessor == ACC_BUILTIN || accessor == ACC_MODULE || accessor == ACC_GLOBALS;
}

/* `safe`: the value is what it was, as long as the records before hold; otherwise only its address is known. */
static int top_is_safe(const Node *nd) {
    return is_namespace(nd->accessor) || nd->accessor == ACC_PINNED || nd->accessor == ACC_CAPTURED;
}

int memo_safe(const Node *kid, PyObject *value, int safe) {
    switch (kid->accessor) {
    case ACC_DICTATTR:
    case ACC_KEY:
    case ACC_TYPEATTR:
        return 1;
    case ACC_ITEM:
        return safe && value != NULL && PyTuple_Check(value);
    }
    return 0;
}

/* Is the check's verdict about this object settled as long as the records of the object itself hold? */
static int check_is_settled(const Check *c, PyObject *v) {
    switch (c->op) {
    case OP_TYPE:
    case OP_ABSENT:
    case OP_PRESENT:
    case OP_VALUE:
        return 1;
    case OP_IS:
        return c->pins->how == PIN_OBJECT;
    case OP_LENGTH:
        return PyTuple_Check(v) || PyUnicode_Check(v) || PyBytes_Check(v) || PyDict_Check(v);
    case OP_KEYS:
    case OP_HASKEY:
        return PyDict_Check(v) && !PyODict_Check(v);
    }
    return 0;
}

static int uses_dict(const Check *c) {
    return c->op == OP_KEYS || c->op == OP_HASKEY || c->op == OP_LENGTH;
}

static int checks_use_dict(const Node *nd) {
    for (int i = 0; i < nd->nchecks; i++)
        if (uses_dict(&nd->checks[i])) return 1;
    return 0;
}

static int check_allocates(const Check *c, PyObject *v) {
    if (c->op == OP_PYCHECK || c->op == OP_FLATTEN || c->op == OP_NUMBER) return 1; /* nothing tells of writes */
    return v != NULL &&
           (c->op == OP_SET || (c->op == OP_IS && c->pins->how == PIN_PARTS) ||
            (c->op == OP_KEYS && PyODict_Check(v)) || (c->op == OP_LENGTH && Py_TYPE(v) == &PyRange_Type));
}

static int checks_allocate(const Node *nd, PyObject *value) {
    for (int i = 0; i < nd->nchecks; i++)
        if (check_allocates(&nd->checks[i], value)) return 1;
    return 0;
}

static int has_version(const Node *nd, PyTypeObject *type) {
    for (int i = 0; type->tp_version_tag == 0 && i < nd->nkids; i++)
        if (nd->kids[i].accessor == ACC_TYPEATTR) (void)_PyType_Lookup(type, nd->kids[i].key);
    return type->tp_version_tag != 0;
}

/* Whether the node has to be walked every time, with all that is below it. */
static int always_walked(const Node *nd, PyObject *value, int safe) {
    if (nd->accessor == ACC_CATTR || nd->accessor == ACC_SLOTATTR || nd->accessor == ACC_KEYAT ||
        nd->accessor == ACC_VALUEAT || nd->accessor == ACC_CONVERTED)
        return 1;
    if (nd->accessor == ACC_REFERENT || checks_allocate(nd, value)) return 1;
    if (value == NULL) return nd->nkids > 0;
    for (int i = 0; i < nd->nkids; i++) {
        switch (nd->kids[i].accessor) {
        case ACC_DICTATTR:
            if (PyType_Check(value)) return 1;
            break;
        case ACC_KEY:
            if (!PyDict_Check(value)) return 1;
            break;
        case ACC_ITEM:
            if (!PyList_Check(value) && !(safe && PyTuple_Check(value))) return 1;
            break;
        case ACC_TYPEATTR:
            if (!PyType_Check(value) || !has_version(nd, (PyTypeObject *)value)) return 1;
            break;
        case ACC_CELL:
            if (!PyCell_Check(value)) return 1;
        }
    }
    return 0;
}

static void note_again(Variant *v, const Node *nd) {
    if (reserve((void **)&v->again, &v->again_capacity, v->nagain, sizeof *v->again) < 0)
        v->failed = 1;
    else
        v->again[v->nagain++] = nd;
    v->values[nd->memo] = WALKED;
}

int memo_note(const Node *nd, PyObject *value, Walk *w, int safe) {
    Variant *v = w->record;
    int check = !safe && nd->nchecks > 0, type = 0, object = 0, dict = 0, cls = 0;
    if (is_namespace(nd->accessor)) add_namespace(v, nd, w->gf); /* before: it was just looked up, and nothing ran */
    if (always_walked(nd, value, safe)) {
        note_again(v, nd);
        return 0;
    }
    v->values[nd->memo] = value;
    if (!safe && nd->up >= 0 && nd->accessor != ACC_TYPEOF) add(v, REC_FETCH, nd);
    if (value == NULL) return 1;
    for (int i = 0; i < nd->nchecks; i++) {
        const Check *c = &nd->checks[i];
        type |= c->op == OP_TYPE && (Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE || PyModule_Check(value));
        dict |= uses_dict(c) && PyDict_Check(value);
        check |= !check_is_settled(c, value);
    }
    for (int i = 0; i < nd->nkids; i++) {
        int accessor = nd->kids[i].accessor;
        type |= accessor == ACC_TYPEOF;
        object |= accessor == ACC_DICTATTR;
        dict |= accessor == ACC_KEY;
        cls |= accessor == ACC_TYPEATTR;
    }
    if (object)
        add_dict(v, REC_OBJECT, nd, value, instance_dict(value));
    else if (type)
        add_type(v, nd, Py_TYPE(value));
    if (dict) add_dict(v, REC_DICT, nd, value, value);
    if (cls) add_class(v, nd, (PyTypeObject *)value);
    if (check) add_checks(v, nd, value);
    return 1;
}

/* ---- replaying ----------------------------------------------------------------------------------------- */

/* A node has another value now. */
static void renew(Variant *v, int place, PyObject *now) {
    int low = 0, high = v->nrecords;
    v->values[place] = now;
    while (low < high) {
        int middle = (low + high) / 2;
        if (v->records[middle].place < place)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < v->nrecords && v->records[low].place == place; low++)
        v->records[low].value = now;
}

/* A value from a dict that has changed somewhere: is it what it was, as far as records after this one don't tell? */
static int still_the_same(const Node *nd, PyObject *now, Variant *v, Walk *w) {
    PyObject *old = v->values[nd->memo];
    if (old == WALKED) return 1;
    if (checks_allocate(nd, now) || (now != old && (nd->nkids > 0 || checks_use_dict(nd)))) return 0;
    for (int i = 0; i < nd->nkids; i++) {
        const Node *kid = &nd->kids[i];
        if (kid->accessor != ACC_ITEM || !PyTuple_Check(now)) continue;
        int there = kid->index < PyTuple_GET_SIZE(now); /* a tuple at this address, but which? */
        int r = still_the_same(kid, there ? PyTuple_GET_ITEM(now, kid->index) : NULL, v, w);
        if (r != 1) return r;
    }
    if (now != old) renew(v, nd->memo, now);
    return node_check(nd, now, w);
}

static int entry_unchanged(const Node *kid, PyObject *dict, Variant *v, Walk *w) {
    PyObject *now = _PyDict_GetItem_KnownHash(dict, kid->key, kid->hash);
    return now == NULL && PyErr_Occurred() ? -1 : still_the_same(kid, now, v, w);
}

static int entries_unchanged(Record *r, Group *g, Variant *v, Walk *w) {
    const Node *nd = NODE_OF(v, r);
    int accessor = r->kind == REC_OBJECT ? ACC_DICTATTR : r->kind == REC_DICT ? ACC_KEY : nd->accessor;
    uint64_t version = watch_version(WATCH_OF(r));
    int verdict = 1;
    if (!watch_alive(WATCH_OF(r))) return 0;
    if (r->kind == REC_NAMESPACE) {
        for (int i = 0; verdict == 1 && i < g->nnodes; i++)
            if (g->nodes[i]->accessor == accessor && accessor != ACC_GLOBALS)
                verdict = entry_unchanged(g->nodes[i], r->dict, v, w);
    } else {
        verdict = checks_allocate(nd, r->value) ? 0 : node_check(nd, r->value, w);
        for (int i = 0; verdict == 1 && i < nd->nkids; i++)
            if (nd->kids[i].accessor == accessor) verdict = entry_unchanged(&nd->kids[i], r->dict, v, w);
    }
    if (verdict == 1) r->version = version;
    w->program->repairs++;
    return verdict;
}

static int fetched_same(const Node *nd, Variant *v, Walk *w) {
    PyObject *now;
    int owned; /* never: such nodes are walked */
    if (node_fetch(nd, v->values[nd->up], w->gf, &now, &owned) < 0) return -1;
    return now == v->values[nd->memo];
}

static int record_holds(Record *r, Group *g, Variant *v, Walk *w) {
    PyObject *value = r->value;
    const Node *nd = NODE_OF(v, r);
    switch (r->kind) {
    case REC_OBJECT:
        if (Py_TYPE(value) != r->type || peek_dict(value) != r->dict) return 0;
        if (r->dict == NULL || watch_version(WATCH_OF(r)) == r->version) return 1;
        return entries_unchanged(r, g, v, w);
    case REC_DICT:
        return watch_version(WATCH_OF(r)) == r->version ? 1 : entries_unchanged(r, g, v, w);
    case REC_NAMESPACE:
        if (namespace_of(nd, w->gf) != r->dict) return 0;
        return watch_version(WATCH_OF(r)) == r->version ? 1 : entries_unchanged(r, g, v, w);
    case REC_TYPE:
        return Py_TYPE(value) == r->type;
    case REC_CLASS:
        return ((PyTypeObject *)value)->tp_version_tag == r->version;
    case REC_FETCH:
        return fetched_same(nd, v, w);
    case REC_TENSOR: {
        int verdict = node_check(nd, value, w);
        if (verdict == 1 && !record_attributes(r, nd, value)) r->kind = REC_CHECKS;
        return verdict;
    }
    }
    return node_check(nd, value, w);
}

/* A tensor that had no attributes, and no dict now: has it any that aren't in a dict yet? Only 3.11 keeps these
 * apart. */
static inline int no_inline_values(const Record *r, PyObject *tensor) {
#if DC_PY311
    return r->dict_at != -3 || ((PyObject **)tensor)[-4] == NULL;
#else
    (void)r, (void)tensor;
    return 1;
#endif
}

/* The same for the most frequent kinds, when really nothing has changed. 0: it has, or another kind. */
static inline int record_holds_quietly(const Record *r) {
    PyObject *value = r->value;
    switch (r->kind) {
    case REC_DICT:
        return watch_version(WATCH_OF(r)) == r->version;
    case REC_OBJECT: /* the dict may be gone: only one that is there is read */
        return r->dict_at != 0 && ((PyObject **)value)[r->dict_at] == r->dict && r->dict != NULL &&
               Py_TYPE(value) == r->type && watch_version(WATCH_OF(r)) == r->version;
    case REC_TENSOR:
        return ((PyObject **)value)[r->dict_at] == r->dict && tensor_unchanged(r->tensor, value) &&
               (r->dict == NULL ? no_inline_values(r, value) : watch_version(WATCH_OF(r)) == r->version);
    }
    return 0;
}

static int walk_again(Variant *v, Walk *w) {
    int verdict = 1;
    for (int i = 0; i < v->nagain; i++)
        if (v->again[i]->up >= 0) Py_XINCREF(v->values[v->again[i]->up]);
    for (int i = 0; verdict == 1 && i < v->nagain; i++) {
        const Node *nd = v->again[i];
        verdict = node_walk(nd, nd->up < 0 ? NULL : v->values[nd->up], w, 0);
    }
    for (int i = 0; i < v->nagain; i++)
        if (v->again[i]->up >= 0) Py_XDECREF(v->values[v->again[i]->up]);
    return verdict;
}

static int replay(Group *g, Variant *v, Walk *w) {
    for (Record *r = v->records, *end = r + v->nrecords; r < end; r++) {
        if (record_holds_quietly(r)) continue;
        int verdict = record_holds(r, g, v, w);
        if (verdict != 1) return verdict;
    }
    for (int i = 0; i < g->nslots; i++) {
        PyObject *value = v->values[g->slot_vals[i]];
        if (value != WALKED && value != NULL) w->slots[g->slots[i]] = (PyObject *)((uintptr_t)value | BORROWED);
    }
    if (v->nagain == 0) return 1;
    slots_own(w);
    return walk_again(v, w);
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static Variant *variant_for(Group *g, PyObject *key) { /* NULL: no memory, which only costs time */
    if (g->variants == NULL && (g->variants = PyMem_Calloc(MAX_VARIANTS, sizeof *g->variants)) == NULL) return NULL;
    if (g->nvariants < MAX_VARIANTS) {
        size_t size = sizeof(Variant) + (size_t)g->nvals * sizeof(PyObject *);
        Variant *v = PyMem_Calloc(1, size);
        if (v != NULL) g->variants[g->nvariants++] = v, v->key = key, v->nodes = g->all;
        return v;
    }
    Variant *v = g->variants[g->next++ % MAX_VARIANTS];
    variant_empty(v);
    v->key = key;
    return v;
}

static int group_walk(Group *g, Walk *w) {
    int verdict = 1;
    for (int i = 0; verdict == 1 && i < g->nnodes; i++)
        verdict = node_walk(g->nodes[i], NULL, w, top_is_safe(g->nodes[i]));
    return verdict;
}

static int group_record(Group *g, Variant *v, Walk *w) {
    variant_empty(v);
    memset(v->values, 0, (size_t)g->nvals * sizeof *v->values);
    w->record = v;
    int verdict = group_walk(g, w);
    w->record = NULL;
    v->valid = verdict == 1 && !v->failed;
    if (!v->valid) variant_empty(v);
    if (++g->misses >= MAX_MISSES) {
        g->pause = g->pause == 0 ? 64 : g->pause < MAX_PAUSE ? 2 * g->pause : g->pause;
        g->rest = g->pause;
        g->misses = 0;
    }
    return verdict;
}

/* The full walk allocates (an instance's dict, a record): what earlier groups only borrowed has to be ours. */
int group_check(Group *g, Walk *w) {
    PyObject *key;
    int owned;
    if (!memo_enabled || w->plain) return group_walk(g, w);
    if (top_is_safe(g->nodes[0]))
        key = w->gf->func->func_globals;
    else if (node_fetch(g->nodes[0], NULL, w->gf, &key, &owned) < 0)
        return -1;
    Variant *v = NULL;
    for (int i = 0; i < g->nvariants && v == NULL; i++)
        if (g->variants[i]->key == key) v = g->variants[i];
    if (v != NULL && v->valid) {
        int verdict = replay(g, v, w);
        if (verdict == 1) {
            w->program->hits++;
            g->misses = g->pause = 0;
        }
        if (verdict != 0) return verdict;
        variant_empty(v);
        for (int i = 0; i < g->nslots; i++)
            slot_drop(&w->slots[g->slots[i]]);
    }
    w->program->walks++;
    slots_own(w);
    if (g->rest > 0) {
        g->rest--;
        return group_walk(g, w);
    }
    if (v == NULL) v = variant_for(g, key);
    return v == NULL ? group_walk(g, w) : group_record(g, v, w);
}

void group_clear(Group *g) {
    for (int i = 0; i < g->nvariants; i++)
        variant_free(g->variants[i]);
    PyMem_Free(g->variants);
    PyMem_Free(g->nodes);
    PyMem_Free(g->all);
    PyMem_Free(g->slots);
    PyMem_Free(g->slot_vals);
}
