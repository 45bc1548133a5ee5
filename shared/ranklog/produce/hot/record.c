/* A record of logging: the usual one, of a call that was met before. */

#include "hot.h"

Py_ssize_t place_of_call(void *first, void *second, long long third, long long fourth) {
    uint64_t mixed = (uint64_t)(uintptr_t)first * 31 + (uint64_t)(uintptr_t)second * 17;
    mixed = (mixed >> 4) + (uint64_t)third * 7 + (uint64_t)fourth * 131;
    return (Py_ssize_t)((mixed ^ mixed >> 9) & (KNOWN_CALLS - 1));
}

void remember_call(CallFields **calls, Py_ssize_t place, CallFields *call) {
    CallFields *before = calls[place];
    calls[place] = (CallFields *)Py_NewRef((PyObject *)call);
    Py_XDECREF((PyObject *)before);
}

/* Borrowed; NULL, without an exception, where it is not there. */
static PyObject *field(PyObject *fields, PyObject *name) {
    PyObject *value = PyDict_GetItemWithError(fields, name);
    if (value == NULL)
        PyErr_Clear();
    return value;
}

/* Whether nobody gave it more than logging does: no `extra`, exception or stack. */
static int is_usual(PyObject *fields) {
    Py_ssize_t extra = PyDict_GET_SIZE(fields) - configured.record_fields;
    if (extra > 0)
        extra -= (field(fields, names.message) != NULL) + (field(fields, names.asctime) != NULL);
    return extra <= 0 && field(fields, names.exc_info) == Py_None &&
           field(fields, names.exc_text) == Py_None && field(fields, names.stack_info) == Py_None;
}

static int same_call(CallFields *call, PyObject *file, PyObject *logger, long long line,
                     long long level) {
    return call->file == file && call->logger == logger && call->line == line &&
           call->level == level;
}

/* A new reference; NULL, without an exception, where Python is to look. */
static CallFields *call_of(PyObject *producer, PyObject *fields, PyObject *level) {
    PyObject *file = field(fields, names.pathname), *line = field(fields, names.lineno);
    PyObject *logger = field(fields, names.name), *function = field(fields, names.funcName);
    if (file == NULL || logger == NULL || function == NULL || line == NULL ||
        !PyLong_CheckExact(line))
        return NULL;
    int overflow;
    long long line_number = PyLong_AsLongLongAndOverflow(line, &overflow);
    long long level_number = PyLong_AsLongLong(level);
    if (overflow)
        return NULL;
    CallFields **calls = ((ProducerFields *)producer)->by_record;
    Py_ssize_t place = place_of_call(file, logger, line_number, level_number);
    if (calls[place] != NULL &&
        same_call(calls[place], file, logger, line_number, level_number))
        return (CallFields *)Py_NewRef((PyObject *)calls[place]);
    PyObject *found = PyObject_CallMethodObjArgs(producer, names.call, file, line, function, logger,
                                                 level, NULL);
    if (found == NULL)
        return NULL;
    CallFields *call = (CallFields *)found;
    if (!PyObject_TypeCheck(found, &CallFieldsType) || !call->text_word) {
        Py_DECREF(found);
        return NULL;
    }
    if (same_call(call, file, logger, line_number, level_number))
        remember_call(calls, place, call);
    return call;
}

/* 1: in the ring; 0: Python is to look; -1: an exception that is nobody's to swallow. */
static int try_record(HandlerFields *self, PyObject *record) {
    if (self->filters == NULL || !PyList_CheckExact(self->filters) ||
        PyList_GET_SIZE(self->filters) || self->producer == NULL ||
        !PyObject_TypeCheck(self->producer, &ProducerFieldsType) ||
        (PyObject *)Py_TYPE(record) != configured.record_type)
        return 0;
    PyObject *handlers = PyObject_GetAttr(configured.root, names.handlers);
    int seen = handlers != NULL && PyList_CheckExact(handlers) &&
               PyList_GET_SIZE(handlers) == self->handlers_seen;
    Py_XDECREF(handlers);
    PyObject *fields = seen ? PyObject_GenericGetDict(record, NULL) : NULL;
    if (fields == NULL) {
        PyErr_Clear();
        return 0;
    }
    int done = 0, overflow = 0;
    PyObject *producer = Py_NewRef(self->producer);
    PyObject *level = field(fields, names.levelno), *message = field(fields, names.msg);
    PyObject *arguments = field(fields, names.args);
    if (level != NULL && PyLong_CheckExact(level) && message != NULL && arguments != NULL &&
        PyLong_AsLongAndOverflow(level, &overflow) < WARNING && !overflow && is_usual(fields)) {
        Py_INCREF(level);
        Py_INCREF(message);
        Py_INCREF(arguments);
        CallFields *call = call_of(producer, fields, level);
        done = call != NULL &&
               try_line((ProducerFields *)producer, call, message, arguments);
        Py_XDECREF((PyObject *)call);
        Py_DECREF(level);
        Py_DECREF(message);
        Py_DECREF(arguments);
    }
    Py_DECREF(producer);
    Py_DECREF(fields);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return -1;
        PyErr_Clear(); /* Python meets it again, and tells of it */
    }
    return done;
}

PyObject *handle_record(PyObject *self, PyObject *record) {
    int done = try_record((HandlerFields *)self, record);
    if (done < 0)
        return NULL;
    if (done)
        Py_RETURN_TRUE;
    return PyObject_CallMethodObjArgs(self, names.handle_by_python, record, NULL);
}
