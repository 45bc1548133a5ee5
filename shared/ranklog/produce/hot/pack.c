/* msgpack of plain values, byte for byte as records.py packs them. */

#include "hot.h"
#include <string.h>

/* A head of one byte and `bytes` bytes of `value`, the most significant first. */
static int put(Packing *to, unsigned char head, uint64_t value, int bytes) {
    if (to->end - to->at < 1 + bytes)
        return 0;
    *to->at++ = head;
    while (bytes--)
        *to->at++ = (unsigned char)(value >> 8 * bytes);
    return 1;
}

static int put_whole(Packing *to, PyObject *value) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    uint64_t bits = (uint64_t)number;
    if (overflow) {
        if (overflow < 0)
            return 0;
        bits = PyLong_AsUnsignedLongLong(value);
        return PyErr_Occurred() ? 0 : put(to, 0xcf, bits, 8);
    }
    if (number >= 0)
        return number < 128          ? put(to, (unsigned char)number, 0, 0)
               : number < 256        ? put(to, 0xcc, bits, 1)
               : number < 65536      ? put(to, 0xcd, bits, 2)
               : number < 4294967296 ? put(to, 0xce, bits, 4)
                                     : put(to, 0xcf, bits, 8);
    return number >= -32              ? put(to, (unsigned char)number, 0, 0)
           : number >= -128           ? put(to, 0xd0, bits, 1)
           : number >= -32768         ? put(to, 0xd1, bits, 2)
           : number >= -2147483648LL  ? put(to, 0xd2, bits, 4)
                                      : put(to, 0xd3, bits, 8);
}

static int put_text(Packing *to, PyObject *value) {
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    if (text == NULL || length > to->end - to->at)
        return 0;
    int done = length < 32      ? put(to, (unsigned char)(0xa0 | length), 0, 0)
               : length < 256   ? put(to, 0xd9, (uint64_t)length, 1)
               : length < 65536 ? put(to, 0xda, (uint64_t)length, 2)
                                : 0;
    if (!done || length > to->end - to->at)
        return 0;
    memcpy(to->at, text, (size_t)length);
    to->at += length;
    return 1;
}

/* 0 for what must be looked at now: a tensor is never kept, and nobody's code runs here. */
int put_value(Packing *to, PyObject *value) {
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return put(to, 0xcb, bits, 8);
    }
    if (PyLong_CheckExact(value))
        return put_whole(to, value);
    if (PyUnicode_CheckExact(value))
        return put_text(to, value);
    if (value == Py_None)
        return put(to, 0xc0, 0, 0);
    return PyBool_Check(value) && put(to, value == Py_True ? 0xc3 : 0xc2, 0, 0);
}

int put_length(Packing *to, Py_ssize_t items) {
    return items < 16 ? put(to, (unsigned char)(0x90 | items), 0, 0)
                      : items < 65536 && put(to, 0xdc, (uint64_t)items, 2);
}
