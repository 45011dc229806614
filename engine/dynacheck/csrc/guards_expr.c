/* Expressions over sizes, strides and numbers: postfix programs on 64-bit integers and doubles (guards/shapes.py). */
#include "guards.h"

#include <math.h>

/* clang-format off */
#define EXPR_STEPS(X) \
    X(size) X(stride) X(offset) X(int) X(float) X(const) X(constf) X(add) X(sub) X(mul) X(floordiv) X(mod) X(truediv) \
    X(pow) X(min) X(max) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(and) X(or) X(where) X(bitand) X(bitor) X(bitxor) \
    X(lshift) X(rshift) X(neg) X(abs) X(not) X(tofloat) X(toint) X(floor) X(ceil) X(round) \
    X(sqrt) X(exp) X(log) X(log2) X(sin) X(cos) X(tan) X(sinh) X(cosh) X(tanh) X(asin) X(acos) X(atan)
/* clang-format on */
#define AS_STEP(name) EX_##name,
#define AS_NAME(name) #name,
enum { EXPR_STEPS(AS_STEP) EX_COUNT };
static const char *const step_names[] = {EXPR_STEPS(AS_NAME)};
static double (*const functions[])(double) = {sqrt, exp,  log,  log2, sin,  cos, tan,
                                              sinh, cosh, tanh, asin, acos, atan};

typedef struct {
    int is_float;
    union {
        int64_t i;
        double d;
    } u;
} Number;

enum { EXACT, UNDEFINED, TO_PYTHON };

static int exact_double(int64_t i) {
    return -(1LL << 53) <= i && i <= 1LL << 53;
}

static int load_step(const ExprStep *s, PyObject *const *slots, const int *numbers, Number *out) {
    int overflow = 0;
    out->is_float = s->op == EX_constf || s->op == EX_float;
    if (s->op == EX_const || s->op == EX_constf) {
        memcpy(&out->u, &s->value, sizeof out->u);
        return EXACT;
    }
    PyObject *v = slot_value(slots[numbers[s->slot]]);
    if (v == NULL) return UNDEFINED;
    if (s->op == EX_float) {
        if (!PyFloat_CheckExact(v)) return UNDEFINED;
        out->u.d = PyFloat_AS_DOUBLE(v);
        return EXACT;
    }
    if (s->op == EX_int) {
        if (!PyLong_CheckExact(v)) return UNDEFINED;
        out->u.i = PyLong_AsLongLongAndOverflow(v, &overflow);
        return overflow ? TO_PYTHON : EXACT;
    }
    int what = s->op == EX_size ? TENSOR_SIZE : s->op == EX_stride ? TENSOR_STRIDE : TENSOR_OFFSET_OF;
    int found = tensor_number(v, what, s->dim, &out->u.i);
    return found == 1 ? EXACT : found == 0 ? UNDEFINED : TO_PYTHON;
}

static int power(int64_t base, int64_t exponent, int64_t *out) {
    int64_t result = 1;
    if (exponent < 0 || exponent > 64) return TO_PYTHON;
    while (exponent-- > 0)
        if (__builtin_mul_overflow(result, base, &result)) return TO_PYTHON;
    *out = result;
    return EXACT;
}

static int integers(int op, int64_t a, int64_t b, Number *out) {
    int64_t *r = &out->u.i;
    out->is_float = 0;
    switch (op) {
    case EX_add:
        return __builtin_add_overflow(a, b, r) ? TO_PYTHON : EXACT;
    case EX_sub:
        return __builtin_sub_overflow(a, b, r) ? TO_PYTHON : EXACT;
    case EX_mul:
        return __builtin_mul_overflow(a, b, r) ? TO_PYTHON : EXACT;
    case EX_floordiv:
    case EX_mod: {
        if (b == 0) return UNDEFINED;
        if (b == -1) {
            *r = 0;
            return op == EX_mod ? EXACT : __builtin_sub_overflow(0, a, r) ? TO_PYTHON : EXACT;
        }
        int64_t q = a / b, m = a % b;
        int down = m != 0 && (m < 0) != (b < 0);
        *r = op == EX_mod ? m + (down ? b : 0) : q - down;
        return EXACT;
    }
    case EX_truediv:
        if (b == 0) return UNDEFINED;
        if (!exact_double(a) || !exact_double(b)) return TO_PYTHON;
        out->is_float = 1;
        out->u.d = (double)a / (double)b;
        return EXACT;
    case EX_pow:
        return power(a, b, r);
    case EX_bitand:
        *r = a & b;
        return EXACT;
    case EX_bitor:
        *r = a | b;
        return EXACT;
    case EX_bitxor:
        *r = a ^ b;
        return EXACT;
    case EX_lshift:
        if (b < 0) return UNDEFINED;
        return b > 62 || __builtin_mul_overflow(a, 1LL << b, r) ? TO_PYTHON : EXACT;
    case EX_rshift:
        if (b < 0) return UNDEFINED;
        *r = a >> (b > 63 ? 63 : b);
        return EXACT;
    }
    return TO_PYTHON;
}

static int doubles(int op, double a, double b, Number *out) {
    out->is_float = 1;
    switch (op) {
    case EX_add:
        out->u.d = a + b;
        return EXACT;
    case EX_sub:
        out->u.d = a - b;
        return EXACT;
    case EX_mul:
        out->u.d = a * b;
        return EXACT;
    case EX_truediv:
        out->u.d = a / b;
        return b == 0 ? UNDEFINED : EXACT;
    }
    return TO_PYTHON;
}

static int truth(Number n) {
    return n.is_float ? n.u.d != 0 : n.u.i != 0;
}

static int compare(int op, Number a, Number b) {
    double x = a.is_float ? a.u.d : (double)a.u.i, y = b.is_float ? b.u.d : (double)b.u.i;
    int less, equal;
    if (!a.is_float && !b.is_float)
        less = a.u.i < b.u.i, equal = a.u.i == b.u.i;
    else
        less = x < y, equal = x == y;
    switch (op) {
    case EX_eq:
        return equal;
    case EX_ne:
        return !equal;
    case EX_lt:
        return less;
    case EX_le:
        return less || equal;
    case EX_gt:
        return a.is_float || b.is_float ? x > y : !less && !equal;
    }
    return a.is_float || b.is_float ? x >= y : !less;
}

static int binary(int op, Number a, Number b, Number *out) {
    int mixed = a.is_float || b.is_float;
    if (op == EX_and || op == EX_or) {
        *out = (Number){0, {op == EX_and ? truth(a) && truth(b) : truth(a) || truth(b)}};
        return EXACT;
    }
    if (mixed && ((!a.is_float && !exact_double(a.u.i)) || (!b.is_float && !exact_double(b.u.i)))) return TO_PYTHON;
    if (op >= EX_eq && op <= EX_ge) {
        *out = (Number){0, {compare(op, a, b)}};
        return EXACT;
    }
    if (op == EX_min || op == EX_max) { /* the first of equals, as in Python */
        *out = compare(op == EX_min ? EX_lt : EX_gt, b, a) ? b : a;
        return EXACT;
    }
    if (!mixed) return integers(op, a.u.i, b.u.i, out);
    return doubles(op, a.is_float ? a.u.d : (double)a.u.i, b.is_float ? b.u.d : (double)b.u.i, out);
}

/* To an integer, as int(), math.floor(), math.ceil() and round() do. */
static int integral(int op, Number a, Number *out) {
    if (!a.is_float) return EXACT;
    if (!isfinite(a.u.d)) return UNDEFINED;
    double d = op == EX_floor   ? floor(a.u.d)
               : op == EX_ceil  ? ceil(a.u.d)
               : op == EX_round ? rint(a.u.d)
                                : trunc(a.u.d);
    if (d < -0x1p63 || d >= 0x1p63) return TO_PYTHON;
    *out = (Number){0, {(int64_t)d}};
    return EXACT;
}

/* A function of the math module, which raises where its C function leaves the finite numbers. */
static int function_of(int op, Number a, Number *out) {
    if (!a.is_float && !exact_double(a.u.i)) return TO_PYTHON;
    double x = a.is_float ? a.u.d : (double)a.u.i, y = functions[op - EX_sqrt](x);
    *out = (Number){.is_float = 1, .u.d = y};
    return (isnan(y) && !isnan(x)) || (isinf(y) && isfinite(x)) ? UNDEFINED : EXACT;
}

static int unary(int op, Number a, Number *out) {
    *out = a;
    if (op >= EX_sqrt) return function_of(op, a, out);
    if (op >= EX_toint) return integral(op, a, out);
    if (op == EX_not)
        *out = (Number){0, {!truth(a)}};
    else if (op == EX_tofloat && !a.is_float) {
        if (!exact_double(a.u.i)) return TO_PYTHON;
        *out = (Number){.is_float = 1, .u.d = (double)a.u.i};
    } else if (op == EX_tofloat)
        return EXACT;
    else if (!a.is_float && a.u.i == INT64_MIN)
        return TO_PYTHON;
    else if (a.is_float)
        out->u.d = op == EX_neg ? -a.u.d : __builtin_fabs(a.u.d);
    else
        out->u.i = op == EX_neg ? -a.u.i : llabs(a.u.i);
    return EXACT;
}

int expression_holds(const ExprStep *steps, int n, PyObject *const *slots, const int *numbers) {
    Number stack[33];
    int top = 0;
    for (int i = 0; i < n; i++) {
        int op = steps[i].op, how;
        if (op <= EX_constf)
            how = load_step(&steps[i], slots, numbers, &stack[top++]);
        else if (op >= EX_neg)
            how = unary(op, stack[top - 1], &stack[top - 1]);
        else if (op == EX_where) {
            top -= 2;
            stack[top - 1] = truth(stack[top - 1]) ? stack[top] : stack[top + 1];
            how = EXACT;
        } else {
            top--;
            how = binary(op, stack[top - 1], stack[top], &stack[top - 1]);
        }
        if (how == UNDEFINED) return 0;
        if (how == TO_PYTHON) return 2;
    }
    return truth(stack[0]);
}

/* The steps of an expression, from Python: their number as an int object, or NULL with an exception. */
PyObject *expression_steps(PyObject *program, ExprStep **steps) {
    Py_ssize_t n = PyTuple_GET_SIZE(program);
    ExprStep *made = *steps = PyMem_Calloc((size_t)n + 1, sizeof *made);
    if (made == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *step = PyTuple_GET_ITEM(program, i);
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(step, 0));
        if (name == NULL) return NULL;
        if (PyTuple_GET_SIZE(step) == 1) /* an operator of the same name as a load */
            name = strcmp(name, "float") == 0 ? "tofloat" : strcmp(name, "int") == 0 ? "toint" : name;
        int op = 0;
        while (op < EX_COUNT && strcmp(step_names[op], name) != 0)
            op++;
        if (op == EX_COUNT) return PyErr_Format(PyExc_ValueError, "unknown step %s", name);
        made[i].op = (uint8_t)op;
        if (op == EX_const) {
            PyObject *value = PyTuple_GET_ITEM(step, 1);
            if (PyFloat_Check(value))
                made[i].op = EX_constf, made[i].value.d = PyFloat_AS_DOUBLE(value);
            else
                made[i].value.i = PyLong_AsLongLong(value);
        } else if (op <= EX_float) {
            made[i].slot = (uint16_t)PyLong_AsLong(PyTuple_GET_ITEM(step, 1));
            if (op <= EX_stride) made[i].dim = (uint16_t)PyLong_AsLong(PyTuple_GET_ITEM(step, 2));
        }
        if (PyErr_Occurred()) return NULL;
    }
    return PyLong_FromSsize_t(n);
}
