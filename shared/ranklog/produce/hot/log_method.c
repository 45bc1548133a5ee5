/* `Logger._log` where nobody but our handler would see the record; see fast_log.py. */

#include "hot.h"
#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    /* The Python form; (logger, frame, level) -> Call or None; logging's file. */
    PyObject *slow, *find, *source;
    HandlerFields *handler;
    /* What logging's class and module have that others may replace, and what they had. */
    PyObject *logger_class, *call_handlers, *module_dict, *factory;
} LogMethod;

static int is_empty_list(PyObject *value) {
    return value != NULL && PyList_CheckExact(value) && !PyList_GET_SIZE(value);
}

/* Whether an attribute is an empty list. */
static int has_none(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    int none = is_empty_list(value);
    Py_XDECREF(value);
    return none;
}

/* Whether the way from this logger ends at the root, and nobody is on it. */
static int leads_to_root(PyObject *logger) {
    if (!has_none(logger, names.filters))
        return 0;
    Py_INCREF(logger);
    while (logger != configured.root && logger != Py_None) {
        PyObject *propagate = PyObject_GetAttr(logger, names.propagate);
        int goes_on = propagate == Py_True && has_none(logger, names.handlers);
        Py_XDECREF(propagate);
        PyObject *parent = goes_on ? PyObject_GetAttr(logger, names.parent) : NULL;
        Py_DECREF(logger);
        if (parent == NULL)
            return 0;
        logger = parent;
    }
    int root = logger == configured.root;
    Py_DECREF(logger);
    return root;
}

/* Whether only our handler is at the root, and all between is logging's own. */
static int ours_alone(LogMethod *self) {
    PyObject *handlers = PyObject_GetAttr(configured.root, names.handlers);
    int alone = handlers != NULL && PyList_CheckExact(handlers) && PyList_GET_SIZE(handlers) == 1 &&
                PyList_GET_ITEM(handlers, 0) == (PyObject *)self->handler;
    Py_XDECREF(handlers);
    if (!alone || !is_empty_list(self->handler->filters) ||
        PyDict_GetItemWithError(self->module_dict, names.logRecordFactory) != self->factory)
        return 0;
    PyObject *method = PyObject_GetAttr(self->logger_class, names.callHandlers);
    alone = method == self->call_handlers;
    Py_XDECREF(method);
    return alone;
}

/* The call that was met at this frame, at this level, through this logger; NULL: none. */
static CallFields *known_call(ProducerFields *producer, PyCodeObject *code, long long instruction,
                              long long level, PyObject *logger) {
    Py_ssize_t place = place_of_call(code, logger, instruction, level);
    CallFields *call = producer->by_frame[place];
    if (call != NULL && call->code == (PyObject *)code && call->instruction == instruction &&
        call->level == level && call->owner == logger)
        return (CallFields *)Py_NewRef((PyObject *)call);
    return NULL;
}

/* Asks Python, and keeps what it says. NULL: a record is needed, or an exception. */
static CallFields *new_call(LogMethod *self, ProducerFields *producer, PyObject *logger,
                            PyObject *frame, PyObject *level) {
    PyObject *found = PyObject_CallFunctionObjArgs(self->find, logger, frame, level, NULL);
    if (found == NULL)
        return NULL;
    CallFields *call = (CallFields *)found;
    if (!PyObject_TypeCheck(found, &CallFieldsType) || !call->text_word) {
        Py_DECREF(found);
        return NULL;
    }
    if (call->owner == logger && call->code != NULL)
        remember_call(producer->by_frame,
                      place_of_call(call->code, logger, call->instruction, call->level), call);
    return call;
}

/* The first frame outside logging's file, the reference to `frame` being given up for it. */
static PyFrameObject *outside(LogMethod *self, PyFrameObject *frame) {
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int inside = code->co_filename == self->source ||
                     PyUnicode_Compare(code->co_filename, self->source) == 0;
        Py_DECREF(code);
        if (!inside)
            break;
        Py_SETREF(frame, PyFrame_GetBack(frame));
    }
    return frame;
}

/* A new reference, or NULL: a record is needed, or an exception. */
static CallFields *call_here(LogMethod *self, ProducerFields *producer, PyObject *logger,
                             PyObject *level, long long level_number) {
    static PyObject *one;
    if (one == NULL && (one = PyLong_FromLong(1)) == NULL)
        return NULL;
    /* Frame 0 is that of Logger.info and the like. */
    PyObject *frame = PyObject_Vectorcall(configured.getframe, &one, 1, NULL);
    if (frame == NULL)
        return NULL;
    PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)frame);
    CallFields *call = known_call(producer, code, PyFrame_GetLasti((PyFrameObject *)frame),
                                  level_number, logger);
    Py_DECREF(code);
    if (call == NULL && (frame = (PyObject *)outside(self, (PyFrameObject *)frame)) != NULL) {
        code = PyFrame_GetCode((PyFrameObject *)frame);
        call = known_call(producer, code, PyFrame_GetLasti((PyFrameObject *)frame), level_number,
                          logger);
        Py_DECREF(code);
        if (call == NULL)
            call = new_call(self, producer, logger, frame, level);
    }
    Py_XDECREF(frame);
    return call;
}

/* 1: in the ring, or of no interest; 0: the Python form is to look. May leave an exception. */
static int try_log(LogMethod *self, PyObject *const *args) {
    if (!PyLong_CheckExact(args[1]))
        return 0;
    int overflow;
    long level = PyLong_AsLongAndOverflow(args[1], &overflow);
    PyObject *wanted = self->handler->level, *producer = self->handler->producer;
    if (overflow || level >= WARNING || wanted == NULL || !PyLong_CheckExact(wanted) ||
        producer == NULL || !PyObject_TypeCheck(producer, &ProducerFieldsType) ||
        !leads_to_root(args[0]) || !ours_alone(self))
        return 0;
    long wanted_level = PyLong_AsLongAndOverflow(wanted, &overflow);
    if (overflow)
        return 0;
    if (level < wanted_level)
        return 1;
    Py_INCREF(producer);
    CallFields *call = call_here(self, (ProducerFields *)producer, args[0], args[1], level);
    int done = call != NULL && try_line((ProducerFields *)producer, call, args[2], args[3]);
    Py_XDECREF((PyObject *)call);
    Py_DECREF(producer);
    return done;
}

static PyObject *log_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf,
                                PyObject *kwnames) {
    LogMethod *self = (LogMethod *)callable;
    int plain = PyVectorcall_NARGS(nargsf) == 4 && (kwnames == NULL || !PyTuple_GET_SIZE(kwnames));
    if (plain && self->handler != NULL) {
        if (try_log(self, args))
            Py_RETURN_NONE;
        if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_Exception))
                return NULL;
            PyErr_Clear(); /* the Python form meets it again, and tells of it */
        }
    }
    if (self->slow == NULL)
        Py_RETURN_NONE;
    return PyObject_Vectorcall(self->slow, args, nargsf, kwnames);
}

/* --- the type --------------------------------------------------------------------------------- */

static PyObject *log_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"slow", "handler", "find", "source", NULL};
    PyObject *slow, *handler, *find, *source;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!OU:LogMethod", keywords, &slow,
                                     &HandlerFieldsType, &handler, &find, &source))
        return NULL;
    PyObject *logging = PyImport_ImportModule("logging");
    if (logging == NULL)
        return NULL;
    LogMethod *self = (LogMethod *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = log_vectorcall;
        self->slow = Py_NewRef(slow);
        self->find = Py_NewRef(find);
        self->source = Py_NewRef(source);
        self->handler = (HandlerFields *)Py_NewRef(handler);
        self->module_dict = Py_NewRef(PyModule_GetDict(logging));
        self->logger_class = PyObject_GetAttrString(logging, "Logger");
        self->factory = PyObject_GetAttrString(logging, "LogRecord");
        if (self->logger_class != NULL)
            self->call_handlers = PyObject_GetAttr(self->logger_class, names.callHandlers);
    }
    Py_DECREF(logging);
    if (self != NULL && (self->factory == NULL || self->call_handlers == NULL))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int log_traverse(LogMethod *self, visitproc visit, void *arg) {
    Py_VISIT(self->slow);
    Py_VISIT(self->find);
    Py_VISIT(self->source);
    Py_VISIT((PyObject *)self->handler);
    Py_VISIT(self->logger_class);
    Py_VISIT(self->call_handlers);
    Py_VISIT(self->module_dict);
    Py_VISIT(self->factory);
    return 0;
}

static int log_clear(LogMethod *self) {
    Py_CLEAR(self->slow);
    Py_CLEAR(self->handler);
    Py_CLEAR(self->find);
    Py_CLEAR(self->source);
    Py_CLEAR(self->logger_class);
    Py_CLEAR(self->call_handlers);
    Py_CLEAR(self->module_dict);
    Py_CLEAR(self->factory);
    return 0;
}

static void log_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    log_clear((LogMethod *)self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *log_get(PyObject *self, PyObject *object, PyObject *type) {
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

static PyMemberDef log_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(LogMethod, slow), READONLY, NULL}, /* for inspect.signature */
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject LogMethodType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ranklog.produce._hot.LogMethod",
    .tp_basicsize = sizeof(LogMethod),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR |
                Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(LogMethod, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = log_new,
    .tp_dealloc = log_dealloc,
    .tp_traverse = (traverseproc)log_traverse,
    .tp_clear = (inquiry)log_clear,
    .tp_descr_get = log_get,
    .tp_members = log_members,
};
