/* One record into the ring: where and when it is said, its payload, and the copy that publishes it. */

#include "hot.h"
#include <string.h>
#include <time.h>

/* Context and iteration of this thread or task; 0 where the context has no number yet. */
int find_where(ProducerFields *producer, Where *where) {
    PyObject *stamp = NULL, *own = NULL, *owner = NULL, *number = NULL;
    int found = 0;
    if (configured.stamp == NULL || PyContextVar_Get(configured.stamp, NULL, &stamp) < 0 ||
        PyContextVar_Get(configured.iteration, NULL, &own) < 0 || stamp == NULL || own == NULL)
        goto end;
    where->context = 0;
    if (stamp != configured.empty) {
        owner = PyObject_GetAttr(stamp, names.owner);
        number = owner == producer->owner ? PyObject_GetAttr(stamp, names.number) : NULL;
        if (number == NULL || !PyLong_CheckExact(number))
            goto end;
        where->context = PyLong_AsUnsignedLongLong(number);
        if (where->context == (uint64_t)-1 && PyErr_Occurred())
            goto end;
    }
    if (own == configured.inherited) {
        Py_SETREF(own, PyObject_GetAttr(configured.process, names.iteration));
        if (own == NULL)
            goto end;
    }
    if (!PyLong_CheckExact(own))
        goto end;
    where->iteration = PyLong_AsLongLong(own);
    found = where->iteration != -1 || !PyErr_Occurred();
end:
    if (!found)
        PyErr_Clear();
    Py_XDECREF(stamp);
    Py_XDECREF(own);
    Py_XDECREF(owner);
    Py_XDECREF(number);
    return found;
}

/* See ring.py for the layout. 0 where the ring has no room in this lap, as far as is known. */
int write_record(RingFields *ring, long long word, const Where *where, const char *payload,
                        Py_ssize_t length) {
    struct timespec now;
    uint64_t at = ring->head;
    int64_t place = (int64_t)(at + (uint64_t)ring->offset);
    Py_ssize_t size = FIXED_BYTES + ((length + 7) & ~(Py_ssize_t)7);
    if (at + (uint64_t)size > ring->inline_limit || ring->view.buf == NULL ||
        place < HEADER_BYTES || place > ring->view.len - size || (place & 7) ||
        clock_gettime(CLOCK_MONOTONIC, &now))
        return 0;
    uint64_t *to = (uint64_t *)((char *)ring->view.buf + place);
    to[0] = (uint64_t)length | (uint64_t)(ring->lap & 0xFF) << 24 | (uint64_t)word << 32;
    to[1] = (uint64_t)(configured.offset_ns + now.tv_sec * 1000000000LL + now.tv_nsec);
    to[2] = (uint64_t)where->iteration;
    to[3] = where->context;
    if (length) {
        to[size / 8 - 1] = 0;
        memcpy(to + 4, payload, (size_t)length);
    }
    ring->head = at + (uint64_t)size;
    __atomic_store_n((uint64_t *)ring->view.buf + HEAD_WORD, ring->head, __ATOMIC_RELEASE);
    ring->records++;
    return 1;
}

RingFields *ring_of(ProducerFields *producer) {
    PyObject *ring = producer->ring;
    return ring != NULL && PyObject_TypeCheck(ring, &RingFieldsType) ? (RingFields *)ring : NULL;
}

int try_line(ProducerFields *producer, CallFields *call, PyObject *message, PyObject *arguments) {
    RingFields *ring = ring_of(producer);
    Where where;
    if (ring == NULL || !find_where(producer, &where))
        return 0;
    if (arguments == Py_None || (PyTuple_CheckExact(arguments) && !PyTuple_GET_SIZE(arguments))) {
        Py_ssize_t length;
        const char *text = PyUnicode_CheckExact(message) && call->text_word
                               ? PyUnicode_AsUTF8AndSize(message, &length)
                               : NULL;
        if (text == NULL) {
            PyErr_Clear(); /* a lone surrogate: no UTF-8, as it is */
            return 0;
        }
        return length <= TEXT_BYTES_MAX && write_record(ring, call->text_word, &where, text, length);
    }
    if (message != call->template_ || !PyTuple_CheckExact(arguments) || !call->arguments_word ||
        message == Py_None)
        return 0;
    unsigned char packed[PACKED_BYTES_MAX];
    Packing to = {packed, packed + sizeof packed};
    Py_ssize_t items = PyTuple_GET_SIZE(arguments);
    int good = put_length(&to, items);
    for (Py_ssize_t i = 0; good && i < items; i++)
        good = put_value(&to, PyTuple_GET_ITEM(arguments, i));
    if (!good) {
        PyErr_Clear();
        return 0;
    }
    return write_record(ring, call->arguments_word, &where, (char *)packed, to.at - packed);
}
