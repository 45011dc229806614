/* The native module dynacheck._C: its objects are declared in ../_C.pyi.
 *
 * After changing C: `python setup.py build_ext --inplace` in the root of the repository (or `pip install -e .
 * --no-build-isolation --no-deps` again); both replace engine/dynacheck/_C.*.so.
 */
#include "guards.h"

/* ---- NULL ----------------------------------------------------------------------------------------------------- */

static PyObject *null_repr(PyObject *self) {
    (void)self;
    return PyUnicode_FromString("<NULL>");
}

static PyTypeObject Null_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacheck._C.NullType",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_repr = null_repr,
};

static struct {
    PyObject_HEAD
} null_object = {PyObject_HEAD_INIT(&Null_Type)};
PyObject *const dynacheck_null = (PyObject *)&null_object;

/* ---- the module ------------------------------------------------------------------------------------------------ */

static PyObject *py_force(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    int value;
    if (!PyArg_ParseTuple(args, "si:force", &name, &value)) return NULL;
    if (strcmp(name, "fallback") == 0) {
        frame_force_fallback = value;
        Py_RETURN_NONE;
    }
    int known = guards_force(name, value);
    if (known == 0) PyErr_Format(PyExc_ValueError, "no testing switch is called %s", name);
    return known > 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *py_type_lookup(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (n != 3 || !PyUnicode_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "type_lookup(class, name, default)");
        return NULL;
    }
    PyObject *found = PyType_Check(args[0]) ? _PyType_Lookup((PyTypeObject *)args[0], args[1]) : NULL;
    if (!found && PyErr_Occurred()) return NULL;
    return Py_NewRef(found ? found : args[2]);
}

/* Asking an object for its `__dict__` makes one, and some look whether they have one (copies and calls of partials,
 * pickled exceptions). */
static PyObject *py_lacks_dict(PyObject *module, PyObject *obj) {
    (void)module;
    return PyBool_FromLong(!PyType_Check(obj) && has_no_attributes(obj));
}

static PyMethodDef methods[] = {
    {"force", py_force, METH_VARARGS, "Set a testing switch."},
    {"type_lookup", (PyCFunction)(void (*)(void))py_type_lookup, METH_FASTCALL,
     "The raw entry of the first class of the MRO that has the name, or the default."},
    {"lacks_dict", py_lacks_dict, METH_O,
     "Whether an object may have a dict, and has none as long as nobody asks for it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynacheck._C",
    .m_doc = "The native part: frame hook, per-code entries, guard programs.",
    .m_size = -1,
    .m_methods = methods,
};

static int check_interpreter(void) {
    if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
        PyErr_Format(PyExc_ImportError,
                     "dynacheck._C was built for Python %d.%d; reinstall pytest-dynacheck for this one",
                     PY_MAJOR_VERSION, PY_MINOR_VERSION);
        return -1;
    }
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "dynacheck._C works in the main interpreter only");
        return -1;
    }
    return 0;
}

PyMODINIT_FUNC PyInit__C(void) {
    if (check_interpreter() < 0) return NULL;
    PyObject *m = PyModule_Create(&module_def);
    if (m == NULL || PyType_Ready(&Null_Type) < 0 || entries_module_init(m) < 0 || frame_module_init(m) < 0 ||
        hook_module_init(m) < 0 || graphcall_module_init(m) < 0 || guards_module_init(m) < 0 ||
        PyModule_AddIntConstant(m, "ABI", DYNACHECK_ABI) < 0 ||
        PyModule_AddObjectRef(m, "NULL", dynacheck_null) < 0 ||
        PyModule_AddObjectRef(m, "InstanceMethod", (PyObject *)&PyInstanceMethod_Type) < 0) {
        Py_XDECREF(m);
        return NULL;
    }
    return m;
}
