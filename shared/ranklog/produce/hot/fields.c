/* Bases of ring.Ring, calls.Call, producer.Producer and handler.RanklogHandler: what the hot path
   reads of them lies in C structs, and is an attribute like any other to their Python code. */

#include "hot.h"
#include <stddef.h>
#include <structmember.h>

#define OBJECT(type, name) {#name, T_OBJECT, offsetof(type, name), 0, NULL}
#define NUMBER(type, name, kind) {#name, kind, offsetof(type, name), 0, NULL}
#define TYPE_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC)

/* Of the base itself: for what a subclass adds, its own runs first and calls this one. */
#define DEALLOC(kind, type)                                                                        \
    static void kind##_dealloc(PyObject *self) {                                                   \
        PyObject_GC_UnTrack(self);                                                                 \
        kind##_clear((type *)self);                                                                \
        Py_TYPE(self)->tp_free(self);                                                              \
    }

/* --- ring ------------------------------------------------------------------------------------- */

static int ring_traverse(RingFields *self, visitproc visit, void *arg) {
    Py_VISIT(self->memory);
    return 0;
}

static void ring_release(RingFields *self) {
    if (self->view.buf != NULL) {
        PyBuffer_Release(&self->view);
        self->view.buf = NULL;
        self->view.len = 0;
    }
}

static int ring_clear(RingFields *self) {
    ring_release(self);
    Py_CLEAR(self->memory);
    return 0;
}

static PyObject *ring_attach(RingFields *self, PyObject *memory) {
    ring_release(self);
    if (PyObject_GetBuffer(memory, &self->view, PyBUF_WRITABLE) < 0) {
        self->view.buf = NULL;
        return NULL;
    }
    if (self->view.len < HEADER_BYTES || (uintptr_t)self->view.buf & 7) {
        ring_release(self);
        PyErr_SetString(PyExc_ValueError, "no memory of a ring");
        return NULL;
    }
    Py_XSETREF(self->memory, Py_NewRef(memory));
    Py_RETURN_NONE;
}

static PyObject *ring_detach(RingFields *self, PyObject *ignored) {
    ring_release(self);
    Py_RETURN_NONE;
}

static PyMemberDef ring_members[] = {
    {"memory", T_OBJECT, offsetof(RingFields, memory), READONLY, NULL},
    NUMBER(RingFields, head, T_ULONGLONG),
    NUMBER(RingFields, limit, T_ULONGLONG),
    NUMBER(RingFields, reserve_limit, T_ULONGLONG),
    NUMBER(RingFields, inline_limit, T_ULONGLONG),
    NUMBER(RingFields, lap, T_ULONGLONG),
    NUMBER(RingFields, records, T_ULONGLONG),
    NUMBER(RingFields, offset, T_LONGLONG),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef ring_methods[] = {
    {"attach", (PyCFunction)ring_attach, METH_O, "Write into this memory from now on."},
    {"detach", (PyCFunction)ring_detach, METH_NOARGS, "Let go of the memory."},
    {NULL, NULL, 0, NULL},
};

DEALLOC(ring, RingFields)

PyTypeObject RingFieldsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ranklog.produce._hot.RingFields",
    .tp_basicsize = sizeof(RingFields),
    .tp_flags = TYPE_FLAGS,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = ring_dealloc,
    .tp_traverse = (traverseproc)ring_traverse,
    .tp_clear = (inquiry)ring_clear,
    .tp_members = ring_members,
    .tp_methods = ring_methods,
};

/* --- call ------------------------------------------------------------------------------------- */

static int call_traverse(CallFields *self, visitproc visit, void *arg) {
    Py_VISIT(self->file);
    Py_VISIT(self->function);
    Py_VISIT(self->logger);
    Py_VISIT(self->template_);
    Py_VISIT(self->code);
    Py_VISIT(self->owner);
    return 0;
}

static int call_clear(CallFields *self) {
    Py_CLEAR(self->file);
    Py_CLEAR(self->function);
    Py_CLEAR(self->logger);
    Py_CLEAR(self->template_);
    Py_CLEAR(self->code);
    Py_CLEAR(self->owner);
    return 0;
}

static PyMemberDef call_members[] = {
    OBJECT(CallFields, file),
    OBJECT(CallFields, function),
    OBJECT(CallFields, logger),
    {"template", T_OBJECT, offsetof(CallFields, template_), 0, NULL},
    OBJECT(CallFields, code),
    OBJECT(CallFields, owner),
    NUMBER(CallFields, line, T_LONGLONG),
    NUMBER(CallFields, level, T_LONGLONG),
    NUMBER(CallFields, site, T_LONGLONG),
    NUMBER(CallFields, text_word, T_LONGLONG),
    NUMBER(CallFields, arguments_word, T_LONGLONG),
    NUMBER(CallFields, instruction, T_LONGLONG),
    {NULL, 0, 0, 0, NULL},
};

DEALLOC(call, CallFields)

PyTypeObject CallFieldsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ranklog.produce._hot.CallFields",
    .tp_basicsize = sizeof(CallFields),
    .tp_flags = TYPE_FLAGS,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = call_dealloc,
    .tp_traverse = (traverseproc)call_traverse,
    .tp_clear = (inquiry)call_clear,
    .tp_members = call_members,
};

/* --- producer --------------------------------------------------------------------------------- */

static int producer_traverse(ProducerFields *self, visitproc visit, void *arg) {
    Py_VISIT(self->ring);
    Py_VISIT(self->owner);
    Py_VISIT(self->doubles);
    Py_VISIT(self->last_series);
    for (Py_ssize_t i = 0; i < KNOWN_CALLS; i++) {
        Py_VISIT(self->by_frame[i]);
        Py_VISIT(self->by_record[i]);
    }
    for (Py_ssize_t i = 0; i < KNOWN_SERIES; i++)
        Py_VISIT(self->series[i]);
    return 0;
}

static void producer_drop_known(ProducerFields *self) {
    for (Py_ssize_t i = 0; i < KNOWN_CALLS; i++) {
        Py_CLEAR(self->by_frame[i]);
        Py_CLEAR(self->by_record[i]);
    }
    for (Py_ssize_t i = 0; i < KNOWN_SERIES; i++)
        Py_CLEAR(self->series[i]);
}

static int producer_clear(ProducerFields *self) {
    Py_CLEAR(self->ring);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->doubles);
    Py_CLEAR(self->last_series);
    producer_drop_known(self);
    return 0;
}

static PyObject *producer_forget_known(ProducerFields *self, PyObject *ignored) {
    producer_drop_known(self);
    Py_RETURN_NONE;
}

/* line(call, message, arguments=()): the Python form does what isn't done here. */
static PyObject *producer_line(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if ((nargs == 2 || nargs == 3) && PyObject_TypeCheck(args[0], &CallFieldsType) &&
        try_line((ProducerFields *)self, (CallFields *)args[0], args[1],
                 nargs == 3 ? args[2] : Py_None))
        Py_RETURN_NONE;
    PyObject *slow = PyObject_GetAttr(self, names.line_by_python);
    if (slow == NULL)
        return NULL;
    PyObject *done = PyObject_Vectorcall(slow, args, (size_t)nargs, NULL);
    Py_DECREF(slow);
    return done;
}

static PyMemberDef producer_members[] = {
    OBJECT(ProducerFields, ring),
    OBJECT(ProducerFields, owner),
    OBJECT(ProducerFields, doubles),
    OBJECT(ProducerFields, last_series),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef producer_methods[] = {
    {"forget_known", (PyCFunction)producer_forget_known, METH_NOARGS,
     "Their numbers mean nothing any more."},
    {"line", (PyCFunction)(void (*)(void))producer_line, METH_FASTCALL,
     "As `line_by_python`, which it calls for what is not done here."},
    {NULL, NULL, 0, NULL},
};

DEALLOC(producer, ProducerFields)

PyTypeObject ProducerFieldsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ranklog.produce._hot.ProducerFields",
    .tp_basicsize = sizeof(ProducerFields),
    .tp_flags = TYPE_FLAGS,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = producer_dealloc,
    .tp_traverse = (traverseproc)producer_traverse,
    .tp_clear = (inquiry)producer_clear,
    .tp_members = producer_members,
    .tp_methods = producer_methods,
};

/* --- handler ---------------------------------------------------------------------------------- */

static int handler_traverse(HandlerFields *self, visitproc visit, void *arg) {
    Py_VISIT(self->producer);
    Py_VISIT(self->filters);
    Py_VISIT(self->level);
    return 0;
}

static int handler_clear(HandlerFields *self) {
    Py_CLEAR(self->producer);
    Py_CLEAR(self->filters);
    Py_CLEAR(self->level);
    return 0;
}

static PyMemberDef handler_members[] = {
    OBJECT(HandlerFields, producer),
    OBJECT(HandlerFields, filters),
    OBJECT(HandlerFields, level),
    NUMBER(HandlerFields, handlers_seen, T_PYSSIZET),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef handler_methods[] = {
    {"handle", handle_record, METH_O,
     "As `handle_by_python`, which it calls for what is not done here."},
    {NULL, NULL, 0, NULL},
};

DEALLOC(handler, HandlerFields)

PyTypeObject HandlerFieldsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ranklog.produce._hot.HandlerFields",
    .tp_basicsize = sizeof(HandlerFields),
    .tp_flags = TYPE_FLAGS,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = handler_dealloc,
    .tp_traverse = (traverseproc)handler_traverse,
    .tp_clear = (inquiry)handler_clear,
    .tp_members = handler_members,
    .tp_methods = handler_methods,
};
