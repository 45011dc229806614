/* Placeholder: a program that accepts only the empty specification and always passes. */
#include "native.h"

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"spec", NULL};
    PyObject *spec;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:GuardProgram", names, &PyTuple_Type, &spec)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(spec) != 0) {
        PyErr_SetString(PyExc_ValueError, "only the empty specification is supported");
        return NULL;
    }
    return type->tp_alloc(type, 0);
}

PyTypeObject GuardProgram_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacheck._C.GuardProgram",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = program_new,
};

int guard_program_check(PyObject *program, const GuardFrame *gf, PyObject **captured)
{
    (void)program, (void)gf, (void)captured;
    return 1;
}

int guard_program_captures(PyObject *program)
{
    (void)program;
    return 0;
}

int guard_program_alive(PyObject *program)
{
    (void)program;
    return 1;
}

int guard_program_on_death(PyObject *program, void (*fn)(void *), void *arg)
{
    (void)program, (void)fn, (void)arg;
    return 0;
}

int guards_force(const char *name, int value)
{
    (void)name, (void)value;
    return 0;
}

int guards_module_init(PyObject *module)
{
    return PyModule_AddType(module, &GuardProgram_Type);
}
