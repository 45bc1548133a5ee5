/* Values of telemetry: one float of a known name, or the values of a series that was met before. */

#include "hot.h"
#include <string.h>

/* Whether two names or values are exactly str, and the same. */
static int same_text(PyObject *one, PyObject *other) {
    return one == other || (PyUnicode_CheckExact(one) && PyUnicode_CheckExact(other) &&
                            PyUnicode_GET_LENGTH(one) == PyUnicode_GET_LENGTH(other) &&
                            PyUnicode_Compare(one, other) == 0);
}

/* The same of values of a dimension, of which ints are kept too: 1 is not True here, nor 1.0. */
static int same_value(PyObject *one, PyObject *other) {
    if (!PyLong_CheckExact(one) || !PyLong_CheckExact(other))
        return PyUnicode_CheckExact(one) && same_text(one, other);
    int overflow, too;
    long long number = PyLong_AsLongLongAndOverflow(one, &overflow);
    return number == PyLong_AsLongLongAndOverflow(other, &too) && !overflow && !too;
}

/* A place for the series that a call is of; -1 for names or dimensions that are nothing to keep. */
static Py_ssize_t place_of_series(const Values *said) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!PyDict_CheckExact(said->values) || !PyDict_Next(said->values, &at, &name, &value) ||
        !PyUnicode_CheckExact(name))
        return -1;
    uint64_t mixed = (uint64_t)PyObject_Hash(name) + (uint64_t)PyDict_GET_SIZE(said->values);
    for (Py_ssize_t i = 0; i < said->count; i++) {
        PyObject *dimension = said->dims[i];
        if (!PyUnicode_CheckExact(dimension) && !PyLong_CheckExact(dimension))
            return -1;
        mixed = mixed * 31 + (uint64_t)PyObject_Hash(dimension);
    }
    return (Py_ssize_t)((mixed ^ mixed >> 7 ^ mixed >> 32) & (KNOWN_SERIES - 1));
}

/* `names`: a tuple, in the order of `values`. */
static int has_names(PyObject *names, PyObject *values) {
    PyObject *name, *value;
    Py_ssize_t at = 0, i = 0;
    if (!PyTuple_CheckExact(names) || PyTuple_GET_SIZE(names) != PyDict_GET_SIZE(values))
        return 0;
    while (PyDict_Next(values, &at, &name, &value))
        if (!same_text(PyTuple_GET_ITEM(names, i++), name))
            return 0;
    return 1;
}

/* `key` as telemetry.py makes it: names, or (names, (dimension, value) …, type …). */
static int is_key_of(PyObject *key, const Values *said) {
    if (!said->count)
        return has_names(key, said->values);
    if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 1 + 2 * said->count ||
        !has_names(PyTuple_GET_ITEM(key, 0), said->values))
        return 0;
    for (Py_ssize_t i = 0; i < said->count; i++) {
        PyObject *pair = PyTuple_GET_ITEM(key, 1 + i);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 ||
            !same_text(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(said->names, i)) ||
            !same_value(PyTuple_GET_ITEM(pair, 1), said->dims[i]))
            return 0;
    }
    return 1;
}

void learn_series(ProducerFields *producer, const Values *said) {
    PyObject *last = producer->last_series;
    if (last == NULL || !PyTuple_CheckExact(last) || PyTuple_GET_SIZE(last) != 2 ||
        !PyLong_CheckExact(PyTuple_GET_ITEM(last, 1)))
        return;
    Py_ssize_t place = place_of_series(said);
    if (place < 0 || !is_key_of(PyTuple_GET_ITEM(last, 0), said))
        return;
    int overflow;
    long long word = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(last, 1), &overflow);
    if (word <= 0 || overflow)
        return;
    producer->words[place] = word;
    Py_XSETREF(producer->series[place], Py_NewRef(PyTuple_GET_ITEM(last, 0)));
}

static int try_double(ProducerFields *producer, RingFields *ring, PyObject *values) {
    PyObject *name, *value, *word;
    Py_ssize_t at = 0;
    Where where;
    if (producer->doubles == NULL || !PyDict_CheckExact(producer->doubles) ||
        !PyDict_Next(values, &at, &name, &value) || !PyFloat_CheckExact(value) ||
        !PyUnicode_CheckExact(name))
        return 0;
    double number = PyFloat_AS_DOUBLE(value);
    word = PyDict_GetItemWithError(producer->doubles, name);
    if (word == NULL || !find_where(producer, &where)) {
        PyErr_Clear();
        return 0;
    }
    return write_record(ring, PyLong_AsLongLong(word), &where, (char *)&number, sizeof number);
}

int try_values(ProducerFields *producer, const Values *said) {
    RingFields *ring = ring_of(producer);
    if (ring == NULL || !PyDict_CheckExact(said->values))
        return 0;
    if (!said->count && PyDict_GET_SIZE(said->values) == 1 &&
        try_double(producer, ring, said->values))
        return 1;
    Py_ssize_t place = place_of_series(said);
    Where where;
    if (place < 0 || producer->series[place] == NULL ||
        !is_key_of(producer->series[place], said) || !find_where(producer, &where))
        return 0;
    unsigned char packed[PACKED_BYTES_MAX];
    Packing to = {packed, packed + sizeof packed};
    PyObject *name, *value;
    Py_ssize_t at = 0;
    int good = put_length(&to, PyDict_GET_SIZE(said->values));
    while (good && PyDict_Next(said->values, &at, &name, &value))
        good = put_value(&to, value);
    if (!good) {
        PyErr_Clear();
        return 0;
    }
    return write_record(ring, producer->words[place], &where, (char *)packed, to.at - packed);
}
