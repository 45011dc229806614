/* Guard programs: what the guards_*.c files know of each other. The specification is in ../guards/program.py. */
#ifndef DYNACHECK_GUARDS_H
#define DYNACHECK_GUARDS_H

#include "native.h"

/* ---- accessors and checks: the numbers are handed to Python as GUARD_ACCESSORS and GUARD_OPS ----------- */

/* clang-format off */
#define DC_ACCESSORS(X) \
    X(LOCAL) X(FREE) X(GLOBAL) X(BUILTIN) X(MODULE) X(GLOBALS) X(CAPTURED) X(PINNED) X(DICTATTR) X(TYPEOF) \
    X(TYPEATTR) X(SLOTATTR) X(CATTR) X(CELL) X(REFERENT) X(ITEM) X(KEY) X(KEYAT) X(VALUEAT) X(CONVERTED)
#define DC_OPS(X) \
    X(TYPE) X(IS) X(VALUE) X(LENGTH) X(KEYS) X(SET) X(HASKEY) X(ABSENT) X(PRESENT) X(CODE) X(TENSOR) X(MARKS) \
    X(NUMBER) X(DETAILS) X(FLATTEN) X(PYCHECK) X(SAME) X(DISTINCT) X(EXPRESSION) X(OVERLAP) X(AMBIENT)
/* clang-format on */

#define DC_AS_ACCESSOR(name) ACC_##name,
#define DC_AS_OP(name) OP_##name,
enum { DC_ACCESSORS(DC_AS_ACCESSOR) ACC_COUNT };
enum { DC_OPS(DC_AS_OP) OP_COUNT };

/* An object that a guard compares with. Weakly held ones need no look at their weak reference: when one dies, its
 * program is dead and never passes again (see `Program.dead`). */
enum { PIN_OBJECT, PIN_CONST, PIN_DESCRIPTOR, PIN_PARTS, PIN_ANY, PIN_DEAD };

typedef struct Pin {
    int how;
    int nparts;
    PyObject *object;  /* to compare with; the type of a descriptor or of what has parts */
    PyObject *owner;   /* PIN_DESCRIPTOR: its class */
    PyObject *name;    /* PIN_DESCRIPTOR: its name; PIN_PARTS: tuple of attribute names */
    struct Pin *parts; /* PIN_PARTS */
} Pin;

#define DC_ANY_SIZE INT64_MIN
#define MAX_SPECS 32
enum { KEYS_TELL = -1, PLAIN = -2 };

typedef struct {
    int refs; /* checks of one program that it serves */
    PyTypeObject *type;
    uint64_t keys;
    int32_t dtype, device_index, rank;
    int32_t layout;     /* torch's number; or KEYS_TELL, or PLAIN: sizes are where every plain tensor has them, too */
    uint32_t type_word; /* dtype and device as tensors keep them, from the first tensor that had the right ones */
    char requires_grad, has_sizes, has_strides, in_memory, type_word_known;
    int64_t dims[]; /* sizes, then strides */
} TensorSpec;

typedef struct {
    uint8_t op;
    uint16_t slot;
    uint16_t dim;
    union {
        int64_t i;
        double d;
    } value;
} ExprStep;

typedef struct {
    int op;
    int n;           /* pins, steps */
    int64_t number;  /* LENGTH; HASKEY: hash; SET: ordered */
    Pin *pins;       /* one, or several for KEYS and SET */
    void *data;      /* TensorSpec, ExprStep[], last pointers of DISTINCT, extents and pairs of OVERLAP */
    PyObject *key;   /* HASKEY; MARKS, DETAILS, FLATTEN, OVERLAP: tuple; SET: the type. Borrowed from Program.keep */
    PyObject *guard; /* the Python guard, borrowed from Program.keep */
} Check;

typedef struct Node {
    uint8_t accessor;
    int32_t index; /* LOCAL, FREE, ITEM, KEYAT, VALUEAT */
    int32_t slot;  /* -1: none */
    int32_t memo;  /* its place among the values of its group, */
    int32_t up;    /* and its parent's; -1: none */
    int32_t nchecks, nkids;
    PyObject *key; /* a name or key, borrowed from Program.keep; CAPTURED, PINNED: the object, or NULL when dead */
    Py_hash_t hash;
    Check *checks;
    struct Node *kids;
} Node;

typedef struct {
    Check check;
    int nslots;
    int *slots;
} Relation;

typedef struct {
    int signature;
    int argument;
    void *address;     /* getter or place; GLOBAL: a dict */
    PyObject *key;     /* GLOBAL: its key, */
    Py_hash_t hash;    /* and the key's hash */
    uint64_t expected; /* GLOBAL: the object's address */
} AmbientRead;

struct Variant;

/* Top nodes that are skipped together while nothing they read has changed; see guards_memo.c. */
typedef struct {
    Node **nodes, **all; /* the top ones; by their places */
    int nnodes, nvals;
    int nslots, *slots, *slot_vals; /* slots filled from the values */
    struct Variant **variants;
    int nvariants, next;
    int misses, pause, rest; /* misses in a row; checks without recording then, and still to go */
} Group;

typedef struct Program {
    PyObject_HEAD PyObject *keep; /* list: all that the program owns */
    PyObject *refs;               /* dict of weak references by address */
    PyObject *watcher;            /* called when one of them dies */
    PyObject *life;               /* capsule that `watcher` finds us through */
    AmbientRead *reads;
    PyObject *ambient; /* the Python guard */
    int nreads, ambient_slow;
    Node *nodes;
    int nnodes;
    Node **direct; /* those in no group */
    int ndirect;
    Group *groups;
    int ngroups;
    Relation *relations;
    int nrelations;
    int nslots, ncaptures, *captures;
    char dead, busy, getters;
    void (*on_death)(void *);
    void *on_death_arg;
    TensorSpec *specs[MAX_SPECS]; /* the last that were built */
    int nspecs;
    long long checks, passes, hits, walks, repairs, slow;
} Program;

typedef struct {
    Program *program;
    const GuardFrame *gf;
    PyObject **slots;       /* owned references; with BORROWED set borrowed ones */
    struct Variant *record; /* what is being recorded, or NULL */
    int owns;               /* some slot has a reference of its own */
    int plain;              /* no shortcut: another check of the program is going on */
} Walk;

/* Values that the shortcut found unchanged aren't counted, as long as nothing allocates: `slots_own` makes them ours.
 */
#define BORROWED ((uintptr_t)1)

static inline PyObject *slot_value(PyObject *slot) {
    return (PyObject *)((uintptr_t)slot & ~BORROWED);
}

static inline void slot_drop(PyObject **slot) {
    PyObject *value = *slot;
    *slot = NULL;
    if (!((uintptr_t)value & BORROWED)) Py_XDECREF(value);
}

static inline void slots_own(Walk *w) {
    w->owns = 1;
    for (int i = 0; i < w->program->nslots; i++)
        if ((uintptr_t)w->slots[i] & BORROWED) w->slots[i] = Py_NewRef(slot_value(w->slots[i]));
}

/* ---- guards_build.c ------------------------------------------------------------------------------------ */

int program_build(Program *p, PyObject *spec); /* -1: an exception is set; what was built is the program's to free */
void check_free(Check *c);
void nodes_free(Node *nodes, int n);
int node_count(const Node *nd);

/* ---- guards_walk.c: all give 1 pass, 0 fail, -1 error -------------------------------------------------- */

int pin_matches(const Pin *pin, PyObject *value);
int constant_equal(PyObject *constant, PyObject *value);
/* Where the node's value is; *value is borrowed, or owned when *owned; NULL: nowhere. -1: error. */
int node_fetch(const Node *nd, PyObject *parent, const GuardFrame *gf, PyObject **value, int *owned);
int node_check(const Node *nd, PyObject *value, Walk *w);
int node_walk(const Node *nd, PyObject *parent, Walk *w, int safe);
int relation_check(const Relation *r, Walk *w);
PyObject *instance_dict(PyObject *obj); /* borrowed; NULL: none */

/* True only for objects whose instance dict was never needed: a quick look that makes none. */
static inline int has_no_attributes(PyObject *obj) {
    PyTypeObject *type = Py_TYPE(obj);
    PyObject **object = (PyObject **)obj;
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
#if DC_PY311
        return object[-3] == NULL && object[-4] == NULL; /* dict, inline values */
#elif !DC_PY313_UP
        return object[-3] == NULL; /* dict or inline values */
#else
        return object[-3] == NULL && !(type->tp_flags & Py_TPFLAGS_INLINE_VALUES);
#endif
    }
    return type->tp_dictoffset > 0 && object[type->tp_dictoffset / (Py_ssize_t)sizeof *object] == NULL;
}

/* ---- guards_versions.c --------------------------------------------------------------------------------- */

#if DC_PY311

typedef PyObject Watch; /* the dict itself */

static inline uint64_t watch_version(const Watch *w) {
    return ((const PyDictObject *)w)->ma_version_tag;
}

static inline int watch_alive(const Watch *w) { /* the caller has it from where it was found before */
    (void)w;
    return 1;
}

#else

typedef struct Watch {
    PyObject *dict; /* NULL once it is gone */
    uint64_t version;
    Py_ssize_t refs;
} Watch;

static inline uint64_t watch_version(const Watch *w) {
    return w->version;
}

static inline int watch_alive(const Watch *w) {
    return w->dict != NULL;
}

#endif

extern int versions_work;         /* 0: the self-test failed, and there is no shortcut */
Watch *watch_get(PyObject *dict); /* NULL: can't be watched */
void watch_put(Watch *w);
int versions_module_init(void);

/* ---- guards_memo.c ------------------------------------------------------------------------------------- */

extern int memo_enabled;
void memo_force(int value); /* 0: always walk; 1: the shortcut, where it works */
int group_check(Group *g, Walk *w);
void group_clear(Group *g);
/* While recording: notes the value of a node, and what must stay as it is for the node to pass again. 0: the node is
 * to be walked every time, and its subtree isn't recorded. */
int memo_note(const Node *nd, PyObject *value, Walk *w, int safe);
int memo_safe(const Node *kid, PyObject *value, int safe);

/* ---- guards_torch.c ------------------------------------------------------------------------------------ */

#define TENSOR_OFFSET 16 /* of the at::Tensor in a Python tensor; checked against _cdata */
#define INLINE_DIMS 5    /* a tensor of at most so many dimensions keeps sizes and strides in itself */

#define GRAD_META_SIZE 144 /* bytes of autograd's record of a tensor that are looked at */

/* Where a TensorImpl keeps things: its dispatch key set; rank, sizes and strides; dtype and device; its storage;
 * autograd's record, and what that has at two places. 0: not known. */
extern struct TensorPlaces {
    int keys, rank, type, storage;
    int grad_meta, grad_flag, grad_node;
    int forced_off;
    char (*requires_grad)(const void *impl);
} tensor_places;

static inline char *tensor_impl(PyObject *v) {
    return *(char **)((char *)v + TENSOR_OFFSET);
}

static inline const char *tensor_meta(PyObject *v) {
    return *(const char **)(tensor_impl(v) + tensor_places.grad_meta);
}

static inline int tensor_requires_grad(PyObject *v) {
    if (tensor_places.grad_meta == 0) return tensor_places.requires_grad(tensor_impl(v));
    const char *meta = tensor_meta(v);
    if (meta == NULL) return 0;
    if (meta[tensor_places.grad_flag] || *(void *const *)(meta + tensor_places.grad_node) != NULL) return 1;
    return tensor_places.requires_grad(tensor_impl(v)); /* a view of what requires a gradient does so too */
}

static inline int dims_match(const int64_t *then, const int64_t *now, int n) {
    for (int i = 0; i < n; i++)
        if (then[i] != now[i] && then[i] != DC_ANY_SIZE) return 0;
    return 1;
}

/* Does a plain tensor match, as far as its memory tells? 0: it doesn't, or only `tensor_matches` knows. */
static inline int tensor_unchanged(const TensorSpec *spec, PyObject *v) {
    if (Py_TYPE(v) != spec->type || !spec->type_word_known || tensor_places.forced_off) return 0;
    const char *impl = tensor_impl(v);
    const int64_t *dims = (const int64_t *)(impl + tensor_places.rank);
    return *(const uint64_t *)(impl + tensor_places.keys) == spec->keys &&
           *(const uint32_t *)(impl + tensor_places.type) == spec->type_word && dims[0] == spec->rank &&
           dims_match(spec->dims, dims + 1, spec->rank) &&
           dims_match(spec->dims + spec->rank, dims + 1 + INLINE_DIMS, spec->rank) &&
           tensor_requires_grad(v) == spec->requires_grad;
}

int tensor_matches(TensorSpec *spec, PyObject *value);
int has_marks(PyObject *marks, PyObject *dict);
int marks_match(PyObject *marks, PyObject *tensor);
int details_match(PyObject *details, PyObject *tensor);
int flatten_matches(PyObject *then, PyObject *tensor); /* 2: only Python can tell */

/* Does a tensor of memory hold this one integer? 2: only Python can tell. */
int number_matches(int64_t number, PyObject *tensor);
#define READ_GLOBAL 10 /* the signature of a read of an entry of a dict, by identity */
int ambient_matches(const AmbientRead *r);
int torch_functions_off(void); /* the state to hand to torch_functions_back, or -1: nothing to do */
void torch_functions_back(int state);
extern PyMethodDef torch_methods[];
enum { TENSOR_SIZE, TENSOR_STRIDE, TENSOR_OFFSET_OF };
int tensor_number(PyObject *tensor, int what, int dim, int64_t *out); /* 2: only Python can tell */

/* The storage of a tensor and the bytes from its first element to its last; no storage: it covers none. */
typedef struct {
    void *storage;
    int64_t start, end;
} TensorExtent;
int tensor_extent(PyObject *tensor, TensorExtent *out); /* 2: only Python can tell */

/* ---- guards_expr.c ------------------------------------------------------------------------------------- */

/* 2: Python has to decide. */
int expression_holds(const ExprStep *steps, int n, PyObject *const *slots, const int *numbers);
PyObject *expression_steps(PyObject *program, ExprStep **steps);

#endif
