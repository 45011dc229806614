/* Reading torch without linking it: tensors and global state.
 *
 * Functions come from the libtorch that the process has loaded, by name; where the dispatch key set lies in a tensor
 * is found by comparing with what Python says of samples. guards/access.py and guards/state.py check all of it
 * against Python before any guard relies on it.
 */
#include "guards.h"
#include <dlfcn.h>

typedef int32_t (*get_i32)(void *, int32_t *);
typedef int32_t (*get_i64)(void *, int64_t *);
typedef int32_t (*get_i64s)(void *, int64_t **);
typedef int32_t (*get_data)(void *, void **);

static struct {
    void *library;
    PyTypeObject *tensor_type;
    get_i32 dtype, device_index, device_type, layout;
    get_i64 dim, storage_offset;
    get_i64s sizes, strides;
    get_data data;
    int32_t (*strided)(void), (*cpu)(void), (*int64)(void);
    size_t (*element_size)(int32_t);
    void *context;
    int8_t (*functions_state)(void);
    void (*functions_set)(int8_t);
    int64_t (*functions_length)(void);
} torch_api;

struct TensorPlaces tensor_places;

static inline uint64_t tensor_keys(PyObject *v) {
    return *(uint64_t *)(tensor_impl(v) + tensor_places.keys);
}

static inline void *tensor_handle(PyObject *v) {
    return (char *)v + TENSOR_OFFSET;
}

static int usable(void) {
    return tensor_places.keys != 0 && !tensor_places.forced_off;
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

int tensor_matches(TensorSpec *spec, PyObject *v) {
    int32_t number;
    int64_t rank, *dims;
    void *handle = tensor_handle(v);
    if (Py_TYPE(v) != spec->type) return 0;
    if (!usable()) return 2;
    if (tensor_unchanged(spec, v)) return 1;
    char *impl = tensor_impl(v);
    if (tensor_keys(v) != spec->keys) return 0;
    if (torch_api.dtype(handle, &number) != 0 || number != spec->dtype) return 0;
    if (torch_api.device_index(handle, &number) != 0 || number != spec->device_index) return 0;
    if (spec->in_memory && tensor_places.type != 0) { /* dtype and device are right: so they look */
        spec->type_word = *(uint32_t *)(impl + tensor_places.type);
        spec->type_word_known = 1;
    }
    if (torch_api.dim(handle, &rank) != 0 || rank != spec->rank) return 0;
    if (tensor_requires_grad(v) != spec->requires_grad) return 0;
    if (spec->layout >= 0 && (torch_api.layout(handle, &number) != 0 || number != spec->layout)) return 0;
    if (spec->has_sizes && torch_api.sizes(handle, &dims) != 0) return 2; /* symbols of Python */
    if (spec->has_sizes && !dims_match(spec->dims, dims, spec->rank)) return 0;
    return !spec->has_strides ||
           (torch_api.strides(handle, &dims) == 0 && dims_match(spec->dims + spec->rank, dims, spec->rank));
}

/* Does a tensor's dict have any of the marks? */
int has_marks(PyObject *marks, PyObject *dict) {
    for (Py_ssize_t i = 0; PyDict_GET_SIZE(dict) > 0 && i < PyTuple_GET_SIZE(marks); i++) {
        int there = PyDict_Contains(dict, PyTuple_GET_ITEM(PyTuple_GET_ITEM(marks, i), 0));
        if (there != 0) return there;
    }
    return 0;
}

/* `marks`: ((attribute name, None or tuple of ints), ...). An attribute may be absent; else its set is within ours.
 */
int marks_match(PyObject *marks, PyObject *tensor) {
    if (has_no_attributes(tensor)) return 1;
    PyObject *dict = instance_dict(tensor);
    if (dict == NULL || PyDict_GET_SIZE(dict) == 0) return 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(marks); i++) {
        PyObject *pair = PyTuple_GET_ITEM(marks, i), *then = PyTuple_GET_ITEM(pair, 1), *item;
        PyObject *now = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(pair, 0));
        if (now == NULL && PyErr_Occurred()) return -1;
        if (now == NULL) continue;
        if (then == Py_None || (!PySet_CheckExact(now) && !PyFrozenSet_CheckExact(now))) return 0;
        PyObject *it = PyObject_GetIter(now);
        if (it == NULL) return -1;
        int r = 1;
        while (r == 1 && (item = PyIter_Next(it)) != NULL) {
            r = PyLong_CheckExact(item) ? PySequence_Contains(then, item) : 0;
            Py_DECREF(item);
        }
        Py_DECREF(it);
        if (r != 1 || PyErr_Occurred()) return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

/* `details`: ((attribute name, dict), ...), of a tensor that has dimensions without a size of their own. */
int details_match(PyObject *details, PyObject *tensor) {
    PyObject *dict = instance_dict(tensor);
    PyObject *has = dict == NULL ? NULL : PyDict_GetItemString(dict, "_dynamo_unbacked_indices");
    for (Py_ssize_t i = 0; has != NULL && i < PyTuple_GET_SIZE(details); i++) {
        PyObject *pair = PyTuple_GET_ITEM(details, i), *then = PyTuple_GET_ITEM(pair, 1);
        PyObject *now = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(pair, 0));
        if (now == NULL && PyErr_Occurred()) return -1;
        int r = now == NULL || now == Py_None ? PyDict_GET_SIZE(then) == 0 : constant_equal(then, now);
        if (r != 1) return r;
    }
    return 1;
}

/* Code of the program, which mustn't come to a `__torch_function__`. */
static PyObject *call_plainly(PyObject *how, PyObject *const *args, Py_ssize_t nargs) {
    int8_t state = torch_api.functions_state();
    if (state == 0) torch_api.functions_set(1); /* off for subclasses */
    PyObject *result = how == NULL ? NULL : hook_off_call(how, args, nargs);
    torch_api.functions_set(state);
    Py_XDECREF(how);
    return result;
}

/* Names and context as then? `then`: (__tensor_flatten__, names, context, __metadata_guard__, operator.eq). */
static int made_as_then(PyObject *then, PyTypeObject *type, PyObject *names, PyObject *context) {
    PyObject *args[] = {PyTuple_GET_ITEM(then, 2), context};
    PyObject *now = PySequence_Tuple(names);
    int r = now == NULL ? -1 : constant_equal(PyTuple_GET_ITEM(then, 1), now);
    Py_XDECREF(now);
    if (r != 1) return r;
    PyObject *how = PyObject_GetAttr((PyObject *)type, PyTuple_GET_ITEM(then, 3));
    if (how == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        how = Py_NewRef(PyTuple_GET_ITEM(then, 4));
    }
    PyObject *verdict = call_plainly(how, args, 2);
    r = verdict == NULL ? -1 : PyObject_IsTrue(verdict);
    Py_XDECREF(verdict);
    return r;
}

/* What a wrapper is made of only a method of its class can tell, and its context is an object of any kind: these two
 * calls are all that a walk makes into code of the program. */
int flatten_matches(PyObject *then, PyObject *v) {
    PyObject *names, *context;
    if (_PyType_Lookup(Py_TYPE(v), PyTuple_GET_ITEM(then, 0)) == NULL) return 0;
    if (torch_api.functions_length == NULL) return 2;
    PyObject *made = call_plainly(PyObject_GetAttr(v, PyTuple_GET_ITEM(then, 0)), NULL, 0);
    if (made != NULL) Py_SETREF(made, PySequence_Tuple(made));
    int known = made != NULL && PyArg_ParseTuple(made, "OO:__tensor_flatten__", &names, &context);
    int r = known ? made_as_then(then, Py_TYPE(v), names, context) : -1;
    Py_XDECREF(made);
    return r;
}

/* ---- global state -------------------------------------------------------------------------------------- */

/* Thread-locals of torch: their places differ by thread, and are looked up once in each. */
enum { LOCAL_KEYS, LOCAL_AUTOGRAD, LOCAL_FUNCTIONS, LOCAL_COUNT };

static char *thread_local_place(int which) {
    static __thread char *places[LOCAL_COUNT];
    static const char *const getters[] = {NULL, "_ZN3c1013AutogradState13get_tls_stateEv",
                                          "_ZN2at4impl22PythonTorchFunctionTLS9get_stateEv"};
    if (UNLIKELY(places[which] == NULL)) {
        if (which == LOCAL_KEYS)
            places[which] = dlsym(torch_api.library, "_ZN3c104impl26raw_local_dispatch_key_setE");
        else {
            char *(*getter)(void) = (char *(*)(void))dlsym(torch_api.library, getters[which]);
            places[which] = getter == NULL ? NULL : getter();
        }
    }
    return places[which];
}

/* Signatures: how a read gets its value; `_SIGNATURES` in guards/state.py. */
enum { GIVES_BYTE, GIVES_INT, GIVES_LONG, OF_DEVICE, OF_CONTEXT, AT_ADDRESS, KEYS, GRAD_BIT, FUNCTIONS, PRECISION };

static uint64_t ambient_value(int signature, void *address, int argument) {
    switch (signature) {
    case GIVES_BYTE:
        return (uint8_t)((int8_t (*)(void))address)();
    case GIVES_INT:
        return (uint64_t)((int (*)(void))address)();
    case GIVES_LONG:
        return (uint64_t)((int64_t (*)(void))address)();
    case OF_DEVICE:
        return (uint8_t)((int8_t (*)(int8_t))address)((int8_t)argument);
    case OF_CONTEXT:
        return (uint8_t)((int8_t (*)(void *))address)(torch_api.context);
    case AT_ADDRESS:
        return *(const uint8_t *)address;
    case KEYS:
        return ((const uint64_t *)thread_local_place(LOCAL_KEYS))[argument];
    case GRAD_BIT:
        return (uint64_t)(thread_local_place(LOCAL_AUTOGRAD)[argument / 8] >> argument % 8) & 1;
    case FUNCTIONS: { /* disabled state, begin and end of the stack of modes (shared pointers) */
        const uint64_t *words = (const uint64_t *)thread_local_place(LOCAL_FUNCTIONS);
        return (words[2] - words[1]) / 16 << 8 | (words[0] & 0xff);
    }
    }
    return ((int (*)(void *, int, int))address)(torch_api.context, argument >> 8, argument & 0xff) == 2; /* TF32 */
}

int ambient_matches(const AmbientRead *r) {
    if (r->signature != READ_GLOBAL) return ambient_value(r->signature, r->address, r->argument) == r->expected;
    PyObject *now = _PyDict_GetItem_KnownHash(r->address, r->key, r->hash);
    return now == NULL && PyErr_Occurred() ? -1 : (uintptr_t)now == r->expected;
}

int torch_functions_off(void) {
    if (torch_api.functions_length == NULL || torch_api.functions_length() == 0) return -1;
    int8_t state = torch_api.functions_state();
    torch_api.functions_set(2);
    return state;
}

void torch_functions_back(int state) {
    if (state >= 0) torch_api.functions_set((int8_t)state);
}

int tensor_number(PyObject *v, int what, int dim, int64_t *out) {
    int64_t rank, *dims;
    if (!usable()) return 2;
    if (!PyObject_TypeCheck(v, torch_api.tensor_type)) return 0;
    void *handle = tensor_handle(v);
    if (what == TENSOR_OFFSET_OF) return torch_api.storage_offset(handle, out) == 0;
    if (torch_api.dim(handle, &rank) != 0 || dim >= rank) return 0;
    if ((what == TENSOR_SIZE ? torch_api.sizes : torch_api.strides)(handle, &dims) != 0) return 0;
    *out = dims[dim];
    return 1;
}

int tensor_extent(PyObject *v, TensorExtent *out) {
    int32_t number;
    int64_t rank, first, *sizes, *strides;
    if (!usable() || tensor_places.storage == 0) return 2;
    if (!PyObject_TypeCheck(v, torch_api.tensor_type)) return 0;
    void *handle = tensor_handle(v);
    out->storage = NULL;
    if (torch_api.layout(handle, &number) != 0) return 2;
    if (number != torch_api.strided()) return 1;
    if (torch_api.dtype(handle, &number) != 0 || torch_api.dim(handle, &rank) != 0 ||
        torch_api.storage_offset(handle, &first) != 0 || torch_api.sizes(handle, &sizes) != 0 ||
        torch_api.strides(handle, &strides) != 0)
        return 2;
    int64_t last = first, bytes = (int64_t)torch_api.element_size(number);
    for (int64_t i = 0; i < rank; i++) {
        if (sizes[i] == 0) return 1;
        last += (sizes[i] - 1) * strides[i];
    }
    *out = (TensorExtent){*(void **)(tensor_impl(v) + tensor_places.storage), first * bytes, (last + 1) * bytes};
    return 1;
}

int number_matches(int64_t number, PyObject *v) {
    int32_t dtype, device;
    int64_t rank;
    void *handle = tensor_handle(v), *data;
    if (!usable() || Py_TYPE(v) != torch_api.tensor_type || !torch_api.data || !torch_api.cpu || !torch_api.int64)
        return 2;
    if (torch_api.dim(handle, &rank) != 0 || rank != 0) return 2;
    if (torch_api.dtype(handle, &dtype) != 0 || dtype != torch_api.int64()) return 2;
    if (torch_api.device_type(handle, &device) != 0 || device != torch_api.cpu()) return 2;
    return torch_api.data(handle, &data) != 0 || data == NULL ? 2 : *(int64_t *)data == number;
}

/* ---- set-up, from Python ------------------------------------------------------------------------------- */

static int find_symbols(void) {
    void *lib = torch_api.library;
    torch_api.dtype = (get_i32)dlsym(lib, "aoti_torch_get_dtype");
    torch_api.device_index = (get_i32)dlsym(lib, "aoti_torch_get_device_index");
    torch_api.device_type = (get_i32)dlsym(lib, "aoti_torch_get_device_type");
    torch_api.dim = (get_i64)dlsym(lib, "aoti_torch_get_dim");
    torch_api.storage_offset = (get_i64)dlsym(lib, "aoti_torch_get_storage_offset");
    torch_api.sizes = (get_i64s)dlsym(lib, "aoti_torch_get_sizes");
    torch_api.strides = (get_i64s)dlsym(lib, "aoti_torch_get_strides");
    torch_api.layout = (get_i32)dlsym(lib, "aoti_torch_get_layout");
    torch_api.data = (get_data)dlsym(lib, "aoti_torch_get_data_ptr");
    torch_api.strided = (int32_t (*)(void))dlsym(lib, "aoti_torch_layout_strided");
    torch_api.cpu = (int32_t (*)(void))dlsym(lib, "aoti_torch_device_type_cpu");
    torch_api.int64 = (int32_t (*)(void))dlsym(lib, "aoti_torch_dtype_int64");
    torch_api.element_size = (size_t (*)(int32_t))dlsym(lib, "aoti_torch_dtype_element_size");
    tensor_places.requires_grad = (char (*)(const void *))dlsym(lib, "_ZNK3c1010TensorImpl13requires_gradEv");
    return torch_api.dtype && torch_api.device_index && torch_api.device_type && torch_api.dim &&
           torch_api.storage_offset && torch_api.sizes && torch_api.strides && torch_api.layout &&
           tensor_places.requires_grad;
}

static void find_global_state(void) {
    void *lib = torch_api.library;
    void *(*context)(void) = (void *(*)(void))dlsym(lib, "_ZN2at13globalContextEv");
    torch_api.context = context == NULL ? NULL : context();
#define TLS "_ZN2at4impl22PythonTorchFunctionTLS"
    torch_api.functions_state = (int8_t (*)(void))dlsym(lib, TLS "18get_disabled_stateEv");
    torch_api.functions_set =
        (void (*)(int8_t))dlsym(lib, TLS "18set_disabled_stateENS0_26TorchFunctionDisabledStateE");
    torch_api.functions_length = (int64_t (*)(void))dlsym(lib, TLS "9stack_lenEv");
#undef TLS
    if (torch_api.functions_state == NULL || torch_api.functions_set == NULL) torch_api.functions_length = NULL;
}

/* The first offset at which every sample holds its key set; 0: none, -1: error. */
static int find_keys(PyObject *samples) {
    for (int offset = 8; offset <= 192; offset += 8) {
        int all = 1;
        for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(samples); i++) {
            PyObject *sample = PyList_GET_ITEM(samples, i);
            uint64_t keys = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(sample, 2));
            if (PyErr_Occurred()) return -1;
            all = *(uint64_t *)(tensor_impl(PyTuple_GET_ITEM(sample, 0)) + offset) == keys;
        }
        if (all) return offset;
    }
    return 0;
}

/* Does a plain tensor keep rank, sizes and strides at this offset? */
static int keeps_dims(PyObject *sample, int offset) {
    PyObject *v = PyTuple_GET_ITEM(sample, 0);
    const int64_t *there = (const int64_t *)(tensor_impl(v) + offset);
    int64_t rank, *sizes, *strides;
    void *handle = tensor_handle(v);
    if (torch_api.dim(handle, &rank) != 0 || rank > INLINE_DIMS) return 1;
    if (torch_api.sizes(handle, &sizes) != 0 || torch_api.strides(handle, &strides) != 0) return 0;
    size_t n = (size_t)rank * sizeof *sizes;
    return there[0] == rank && memcmp(there + 1, sizes, n) == 0 && memcmp(there + 1 + INLINE_DIMS, strides, n) == 0;
}

/* Are dtype and device at this offset: two bytes of dtype, one of device type, one of index? */
static int keeps_type(PyObject *sample, int offset) {
    PyObject *v = PyTuple_GET_ITEM(sample, 0);
    uint32_t there = *(uint32_t *)(tensor_impl(v) + offset);
    int32_t dtype, index, device;
    void *handle = tensor_handle(v);
    if (torch_api.dtype(handle, &dtype) != 0 || torch_api.device_index(handle, &index) != 0 ||
        torch_api.device_type(handle, &device) != 0)
        return 0;
    return there == ((uint32_t)dtype | (uint32_t)(uint8_t)device << 16 | (uint32_t)(uint8_t)index << 24);
}

/* Is the storage, the sample's sixth item, at this offset? */
static int keeps_storage(PyObject *sample, int offset) {
    return *(void **)(tensor_impl(PyTuple_GET_ITEM(sample, 0)) + offset) ==
           PyLong_AsVoidPtr(PyTuple_GET_ITEM(sample, 5));
}

/* The one offset before the keys that suits every plain sample; 0 when there isn't exactly one. */
static int find_offset(PyObject *samples, int (*suits)(PyObject *, int), int size, int step) {
    int found = 0, at = 0;
    for (int offset = 8; offset + size <= tensor_places.keys; offset += step) {
        int all = 1;
        for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(samples); i++) {
            PyObject *sample = PyList_GET_ITEM(samples, i);
            all = PyTuple_GET_ITEM(sample, 3) != Py_True || suits(sample, offset);
        }
        found += all;
        at = all ? offset : at;
    }
    return found == 1 ? at : 0;
}

/* Where autograd's record of a tensor has `requires_grad` and the node that made the tensor: what requires a gradient
 * has one of them. The fifth item of a sample: 0: requires none; 1: a leaf that does; 2: made by a node. */
static int suits_grad(const char *meta, int wants, int flag, int node) {
    const void *made_by = *(void *const *)(meta + node);
    return flag != 0 ? meta[flag] == (wants == 1) : (made_by != NULL) == (wants == 2);
}

static int find_in_meta(PyObject *samples, int flag) { /* 0: nowhere */
    for (int at = 8; at < GRAD_META_SIZE; at += flag ? 1 : 8) {
        int all = 1, seen = 0;
        for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(samples); i++) {
            PyObject *sample = PyList_GET_ITEM(samples, i);
            const char *meta = tensor_meta(PyTuple_GET_ITEM(sample, 0));
            int wants = (int)PyLong_AsLong(PyTuple_GET_ITEM(sample, 4));
            all = meta == NULL ? wants == 0 : suits_grad(meta, wants, flag ? at : 0, flag ? 0 : at);
            seen |= 1 << wants;
        }
        if (all && seen == 7) return at;
    }
    return 0;
}

static int meta_is_at(PyObject *samples, int offset, void *(*get)(void *)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(samples); i++) {
        PyObject *v = PyTuple_GET_ITEM(PyList_GET_ITEM(samples, i), 0);
        if (*(void **)(tensor_impl(v) + offset) != get(tensor_handle(v))) return 0;
    }
    return 1;
}

static void find_grad(PyObject *samples) {
    void *(*get)(void *) =
        (void *(*)(void *))dlsym(torch_api.library, "_ZN5torch8autograd4impl17get_autograd_metaERKN2at10TensorBaseE");
    int offset = 8;
    tensor_places.grad_meta = tensor_places.grad_flag = tensor_places.grad_node = 0;
    while (get != NULL && offset < tensor_places.keys && !meta_is_at(samples, offset, get))
        offset += 8;
    if (get == NULL || offset >= tensor_places.keys) return;
    tensor_places.grad_meta = offset;
    tensor_places.grad_flag = find_in_meta(samples, 1);
    tensor_places.grad_node = find_in_meta(samples, 0);
    if (tensor_places.grad_flag == 0 || tensor_places.grad_node == 0) tensor_places.grad_meta = 0;
}

static int check_samples(PyObject *samples) { /* 1; 0: tensors aren't where they should be; -1 */
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(samples); i++) {
        PyObject *sample = PyList_GET_ITEM(samples, i);
        if (!PyTuple_Check(sample) || PyTuple_GET_SIZE(sample) != 6) {
            PyErr_SetString(PyExc_TypeError, "samples are (tensor, address, keys, plain, gradient, storage)");
            return -1;
        }
        PyObject *tensor = PyTuple_GET_ITEM(sample, 0);
        uint64_t address = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(sample, 1));
        if (PyErr_Occurred()) return -1;
        if (Py_TYPE(tensor)->tp_basicsize < TENSOR_OFFSET + 8 || (uintptr_t)tensor_impl(tensor) != address) return 0;
    }
    return 1;
}

static PyObject *py_setup_tensors(PyObject *module, PyObject *args) {
    PyObject *samples;
    const char *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!s:setup_tensors", &PyList_Type, &samples, &path)) return NULL;
    tensor_places.keys = 0;
    if (PyList_GET_SIZE(samples) == 0) Py_RETURN_FALSE;
    if (torch_api.library == NULL) torch_api.library = dlopen(path, RTLD_NOLOAD | RTLD_NOW);
    if (torch_api.library == NULL) Py_RETURN_FALSE;
    find_global_state();
    int there = check_samples(samples);
    if (there < 0) return NULL;
    if (there == 0 || !find_symbols()) Py_RETURN_FALSE;
    int keys = find_keys(samples);
    if (keys < 0) return NULL;
    if (keys == 0) Py_RETURN_FALSE;
    tensor_places.keys = keys;
    tensor_places.rank = find_offset(samples, keeps_dims, 8 * (1 + 2 * INLINE_DIMS), 8);
    tensor_places.type = tensor_places.rank == 0 ? 0 : find_offset(samples, keeps_type, 4, 4);
    int extents = torch_api.strided && torch_api.element_size;
    tensor_places.storage = extents ? find_offset(samples, keeps_storage, 8, 8) : 0;
    find_grad(samples);
    if (PyErr_Occurred()) return NULL;
    PyObject *type = (PyObject *)Py_TYPE(PyTuple_GET_ITEM(PyList_GET_ITEM(samples, 0), 0));
    Py_XSETREF(torch_api.tensor_type, (PyTypeObject *)Py_NewRef(type));
    Py_RETURN_TRUE;
}

static PyObject *dims_tuple(get_i64s get, PyObject *tensor, int64_t rank) {
    int64_t *dims;
    if (get(tensor_handle(tensor), &dims) != 0) return Py_NewRef(Py_None);
    PyObject *t = PyTuple_New((Py_ssize_t)rank);
    for (int64_t i = 0; t != NULL && i < rank; i++) {
        PyObject *size = PyLong_FromLongLong(dims[i]);
        if (size == NULL)
            Py_CLEAR(t);
        else
            PyTuple_SET_ITEM(t, i, size);
    }
    return t;
}

static PyObject *py_tensor_facts(PyObject *module, PyObject *v) {
    int32_t dtype = -1, index = -1;
    int64_t rank = 0;
    (void)module;
    if (!tensor_places.keys != 0 || !PyObject_TypeCheck(v, torch_api.tensor_type)) {
        PyErr_SetString(PyExc_TypeError, "no tensor, or tensor access isn't set up");
        return NULL;
    }
    if (torch_api.dtype(tensor_handle(v), &dtype) != 0 || torch_api.device_index(tensor_handle(v), &index) != 0 ||
        torch_api.dim(tensor_handle(v), &rank) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "torch refused");
        return NULL;
    }
    return Py_BuildValue("iiKNNN", dtype, index, (unsigned long long)tensor_keys(v),
                         PyBool_FromLong(tensor_requires_grad(v)), dims_tuple(torch_api.sizes, v, rank),
                         dims_tuple(torch_api.strides, v, rank));
}

static PyObject *py_tensor_offsets(PyObject *module, PyObject *args) {
    (void)module, (void)args;
    return Py_BuildValue("iiiii", tensor_places.keys, tensor_places.rank, tensor_places.type, tensor_places.storage,
                         tensor_places.grad_meta);
}

static PyObject *py_tensors_ready(PyObject *module, PyObject *args) {
    (void)module, (void)args;
    return PyBool_FromLong(usable());
}

static PyObject *py_native_symbol(PyObject *module, PyObject *name) {
    (void)module;
    const char *symbol = PyUnicode_AsUTF8(name);
    if (symbol == NULL) return NULL;
    void *address = torch_api.library == NULL ? NULL : dlsym(torch_api.library, symbol);
    return PyLong_FromVoidPtr(address);
}

static int can_read(int signature, unsigned long long address) {
    switch (signature) {
    case OF_CONTEXT:
    case PRECISION:
        return address != 0 && torch_api.context != NULL;
    case KEYS:
        return thread_local_place(LOCAL_KEYS) != NULL;
    case GRAD_BIT:
        return thread_local_place(LOCAL_AUTOGRAD) != NULL;
    case FUNCTIONS:
        return thread_local_place(LOCAL_FUNCTIONS) != NULL;
    }
    return address != 0 && signature >= 0 && signature < READ_GLOBAL;
}

static PyObject *py_ambient_read(PyObject *module, PyObject *args) {
    int signature, argument;
    unsigned long long address;
    (void)module;
    if (!PyArg_ParseTuple(args, "iKi:ambient_read", &signature, &address, &argument)) return NULL;
    if (torch_api.library == NULL || !can_read(signature, address)) Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(ambient_value(signature, (void *)(uintptr_t)address, argument));
}

/* Where a getter of at::Context finds its value, when its code is nothing but `movzx eax, byte [rdi + n]; ret`; else
 * 0. */
static PyObject *py_context_field(PyObject *module, PyObject *getter) {
    int32_t displacement = -1;
    (void)module;
    const uint8_t *code = PyLong_AsVoidPtr(getter);
    if (PyErr_Occurred()) return NULL;
#if defined(__x86_64__)
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, far[] = {0x0f, 0xb6, 0x87},
                         near[] = {0x0f, 0xb6, 0x47};
    if (code != NULL && memcmp(code, endbr64, sizeof endbr64) == 0) code += sizeof endbr64;
    if (code != NULL && memcmp(code, far, sizeof far) == 0 && code[7] == 0xc3)
        memcpy(&displacement, code + 3, sizeof displacement);
    else if (code != NULL && memcmp(code, near, sizeof near) == 0 && code[4] == 0xc3)
        displacement = (int8_t)code[3];
#endif
    if (displacement < 0 || torch_api.context == NULL) return PyLong_FromLong(0);
    return PyLong_FromVoidPtr((char *)torch_api.context + displacement);
}

PyMethodDef torch_methods[] = {
    {"setup_tensors", py_setup_tensors, METH_VARARGS, "Find out how tensors are read; see guards/access.py."},
    {"tensors_ready", py_tensors_ready, METH_NOARGS, "Whether that succeeded (and isn't forced off)."},
    {"tensor_offsets", py_tensor_offsets, METH_NOARGS,
     "Where keys, rank, dtype, storage and autograd's record were found in tensors; 0: nowhere."},
    {"tensor_facts", py_tensor_facts, METH_O, "(dtype code, device index, keys, requires_grad, sizes, strides)."},
    {"native_symbol", py_native_symbol, METH_O, "Address of a symbol of the loaded libtorch, or 0."},
    {"ambient_read", py_ambient_read, METH_VARARGS,
     "One native read, or None when it can't be; see guards/state.py."},
    {"context_field", py_context_field, METH_O, "Where a getter of at::Context finds its value, or 0."},
    {"ambient_ready", py_tensors_ready, METH_NOARGS, "Whether global state is read natively."},
    {NULL, NULL, 0, NULL},
};
