/* The compiled form of what runs for every line and value: the fields it reads, and its parts.

   Each `try_…` either does all of what its Python form does, with the same bytes in the ring, or
   nothing at all: then it answers 0 without an exception set, and the Python form is called. The
   GIL is held throughout, and between the look at `head` and its store no Python code can run: no
   reference is given up there, nothing is allocated. So records are as whole as ring.py says. */

#ifndef RANKLOG_HOT_H
#define RANKLOG_HOT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#if PY_VERSION_HEX < 0x030B0000 || defined(Py_GIL_DISABLED) || !defined(__GNUC__)
#error "CPython from 3.11 on, with its lock; the Python form is used elsewhere"
#endif

/* As compiled.py has it: one more with each change of what Python and C know of each other. */
#define VERSION 1
/* As ring.py has them; a test compares what both forms write. */
#define HEADER_BYTES 4096
#define HEAD_WORD 8
#define FIXED_BYTES 32
/* Payloads of more bytes are left to the Python form, and so are arguments that take more. */
#define TEXT_BYTES_MAX 65536
#define PACKED_BYTES_MAX 4096
/* Levels below WARNING come here; the rest has more to it than speed. */
#define WARNING 30
/* Calls and series that are found without asking Python; powers of two. */
#define KNOWN_CALLS 512
#define KNOWN_SERIES 256

typedef struct {
    PyObject_HEAD
    PyObject *memory;
    Py_buffer view; /* of `memory`; buf is NULL while there is none */
    unsigned long long head, limit, reserve_limit, inline_limit, lap, records;
    long long offset;
} RingFields;

typedef struct {
    PyObject_HEAD
    PyObject *file, *function, *logger, *template_, *code, *owner;
    long long line, level, site, text_word, arguments_word, instruction;
} CallFields;

typedef struct {
    PyObject_HEAD
    PyObject *ring, *owner, *doubles, *last_series;
    CallFields *by_frame[KNOWN_CALLS], *by_record[KNOWN_CALLS];
    PyObject *series[KNOWN_SERIES]; /* keys, as telemetry.py makes them */
    long long words[KNOWN_SERIES];
} ProducerFields;

typedef struct {
    PyObject_HEAD
    PyObject *producer, *filters, *level;
    Py_ssize_t handlers_seen;
} HandlerFields;

/* What `configure` was told: objects of context.py and logging. */
typedef struct {
    PyObject *stamp, *iteration, *empty, *inherited, *process, *root, *record_type, *getframe;
    long long offset_ns;
    Py_ssize_t record_fields;
} Configured;

/* Attribute names, interned once. */
typedef struct {
    PyObject *args, *asctime, *call, *exc_info, *exc_text, *filters, *funcName, *handle_by_python,
        *handlers, *iteration, *levelno, *line_by_python, *lineno, *message, *msg, *name, *number,
        *owner, *parent, *pathname, *propagate, *stack_info, *callHandlers, *logRecordFactory;
} Names;

extern Configured configured;
extern Names names;
extern PyTypeObject RingFieldsType, CallFieldsType, ProducerFieldsType, HandlerFieldsType,
    LogMethodType;

/* Context and iteration of a thread or task. */
typedef struct {
    uint64_t context;
    int64_t iteration;
} Where;

typedef struct {
    unsigned char *at, *end;
} Packing;

/* One call of telemetry: a dict, and `count` dimensions (`names` is NULL where there are none). */
typedef struct {
    PyObject *values, *names, *const *dims;
    Py_ssize_t count;
} Values;

/* line.c */
RingFields *ring_of(ProducerFields *producer);
int find_where(ProducerFields *producer, Where *where);
int write_record(RingFields *ring, long long word, const Where *where, const char *payload,
                 Py_ssize_t length);
int try_line(ProducerFields *producer, CallFields *call, PyObject *message, PyObject *arguments);
/* pack.c */
int put_length(Packing *to, Py_ssize_t items);
int put_value(Packing *to, PyObject *value);
/* values.c */
int try_values(ProducerFields *producer, const Values *said);
/* After the Python form took them: the next ones of this series are `try_values`'. */
void learn_series(ProducerFields *producer, const Values *said);
/* record.c */
Py_ssize_t place_of_call(void *first, void *second, long long third, long long fourth);
void remember_call(CallFields **calls, Py_ssize_t place, CallFields *call);
PyObject *handle_record(PyObject *self, PyObject *record);

#endif
