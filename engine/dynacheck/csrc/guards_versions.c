/* Versions of dicts: a number that no dict has had before whenever a dict changes. */
#include "guards.h"

int versions_work = 1;

#if DC_PY311 /* dicts have them */

Watch *watch_get(PyObject *dict) {
    return dict;
}

void watch_put(Watch *w) {
    (void)w;
}

int versions_module_init(void) {
    return 0;
}

#else /* one dict watcher counts for all that are asked about */

static Watch **watches; /* open addressing by the dict's address; DELETED marks a freed place */
static size_t watches_size, watches_used;
static uint64_t watch_counter;
static int watcher = -1;
#define DELETED ((Watch *)1)

static Watch **watch_place(PyObject *dict) {
    Watch **free_place = NULL;
    size_t at = ((uintptr_t)dict >> 4) * 0x9E3779B97F4A7C15ull >> 20;
    for (;; at++) {
        Watch **place = &watches[at & (watches_size - 1)];
        if (*place == NULL) return free_place != NULL ? free_place : place;
        if (*place == DELETED)
            free_place = free_place != NULL ? free_place : place;
        else if ((*place)->dict == dict)
            return place;
    }
}

static int watches_grow(void) {
    size_t old_size = watches_size, size = old_size == 0 ? 256 : old_size * 2;
    Watch **old = watches, **bigger = PyMem_Calloc(size, sizeof *bigger);
    if (bigger == NULL) return -1;
    watches = bigger, watches_size = size, watches_used = 0;
    for (size_t i = 0; i < old_size; i++)
        if (old[i] != NULL && old[i] != DELETED) *watch_place(old[i]->dict) = old[i], watches_used++;
    PyMem_Free(old);
    return 0;
}

static int watch_event(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value) {
    (void)key, (void)value;
    if (watches_size == 0) return 0;
    Watch **place = watch_place(dict);
    if (*place == NULL || *place == DELETED) return 0;
    (*place)->version = ++watch_counter;
    if (event == PyDict_EVENT_DEALLOCATED) {
        (*place)->dict = NULL;
        *place = DELETED;
    }
    return 0;
}

Watch *watch_get(PyObject *dict) { /* NULL: can't be watched */
    if (watcher < 0 || (2 * (watches_used + 1) > watches_size && watches_grow() < 0)) return NULL;
    Watch **place = watch_place(dict);
    if (*place == NULL || *place == DELETED) {
        Watch *w = PyMem_Malloc(sizeof *w);
        if (w == NULL) return NULL;
        if (PyDict_Watch(watcher, dict) < 0) {
            PyErr_Clear();
            PyMem_Free(w);
            return NULL;
        }
        *w = (Watch){dict, ++watch_counter, 0};
        watches_used += *place == NULL;
        *place = w;
    }
    (*place)->refs++;
    return *place;
}

void watch_put(Watch *w) {
    if (--w->refs > 0) return;
    if (w->dict != NULL) {
        Watch **place = watch_place(w->dict);
        if (*place == w) *place = DELETED;
        if (PyDict_Unwatch(watcher, w->dict) < 0) PyErr_Clear();
    }
    PyMem_Free(w);
}

/* On some releases attribute stores on objects with inline values reach no watcher: then there is no shortcut. */
static int watcher_works(void) {
    static const char test[] = "class A: pass\n"
                               "a = A(); a.x = 0; d = a.__dict__; e = {}\n"
                               "def warm(o, n):\n"
                               "    for i in range(n): o.x = i\n"
                               "warm(a, 200)\n";
    static const char *const steps[] = {"warm(a, 1)", "a.y = 1", "del a.y", "d['x'] = 5", "d.clear()"};
    PyObject *ns = PyDict_New(), *r = ns == NULL ? NULL : PyRun_String(test, Py_file_input, ns, ns);
    PyObject *dict = r == NULL ? NULL : PyDict_GetItemString(ns, "d");
    Watch *w = dict == NULL ? NULL : watch_get(dict);
    int works = w != NULL;
    for (size_t i = 0; works && i < sizeof steps / sizeof *steps; i++) {
        uint64_t before = w->version;
        PyObject *done = PyRun_String(steps[i], Py_file_input, ns, ns);
        works = done != NULL && w->version != before;
        Py_XDECREF(done);
    }
    if (w != NULL) watch_put(w);
    Py_XDECREF(r);
    Py_XDECREF(ns);
    if (PyErr_Occurred()) return -1;
    return works;
}

int versions_module_init(void) {
    watcher = PyDict_AddWatcher(watch_event);
    if (watcher < 0) PyErr_Clear();
    versions_work = watcher < 0 ? 0 : watcher_works();
    return versions_work < 0 ? -1 : 0;
}

#endif
