/* The native module dynacheck._C: its objects are declared in ../_C.pyi.
 *
 * After changing C: `python setup.py build_ext --inplace` in the root of the repository (or `pip install -e .
 * --no-build-isolation --no-deps` again); both replace engine/dynacheck/_C.*.so.
 */
#include "native.h"

/* ---- NULL ----------------------------------------------------------------------------------------------------- */

static PyObject *null_repr(PyObject *self)
{
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

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynacheck._C",
    .m_doc = "The native part: frame hook, per-code entries, guard programs.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__C(void)
{
    PyObject *m = PyModule_Create(&module_def);
    if (m == NULL || PyType_Ready(&Null_Type) < 0 || guards_module_init(m) < 0 ||
        PyModule_AddIntConstant(m, "ABI", DYNACHECK_ABI) < 0 ||
        PyModule_AddObjectRef(m, "NULL", dynacheck_null) < 0) {
        Py_XDECREF(m);
        return NULL;
    }
    return m;
}
