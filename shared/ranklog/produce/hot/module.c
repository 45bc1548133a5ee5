/* `ranklog.produce._hot`: the bases, `LogMethod`, and `telemetry`. */

#include "hot.h"
#include <stddef.h>

Configured configured;
Names names;
static PyObject *attached, *slow_telemetry;

static void keep(PyObject **to, PyObject *value) {
    Py_XSETREF(*to, Py_NewRef(value));
}

static PyObject *configure(PyObject *module, PyObject *args) {
    PyObject *stamp, *iteration, *empty, *inherited, *process, *root, *record_type;
    long long offset_ns;
    Py_ssize_t record_fields;
    if (!PyArg_ParseTuple(args, "OOOOOOOLn:configure", &stamp, &iteration, &empty, &inherited,
                          &process, &root, &record_type, &offset_ns, &record_fields))
        return NULL;
    if (!PyContextVar_CheckExact(stamp) || !PyContextVar_CheckExact(iteration)) {
        PyErr_SetString(PyExc_TypeError, "stamp and iteration are context variables");
        return NULL;
    }
    keep(&configured.stamp, stamp);
    keep(&configured.iteration, iteration);
    keep(&configured.empty, empty);
    keep(&configured.inherited, inherited);
    keep(&configured.process, process);
    keep(&configured.root, root);
    keep(&configured.record_type, record_type);
    configured.offset_ns = offset_ns;
    configured.record_fields = record_fields;
    Py_RETURN_NONE;
}

/* Where values go from now on: a producer or None, and the Python form of `telemetry`. */
static PyObject *attach(PyObject *module, PyObject *args) {
    PyObject *producer, *slow;
    if (!PyArg_ParseTuple(args, "OO:attach", &producer, &slow))
        return NULL;
    int known = PyObject_TypeCheck(producer, &ProducerFieldsType);
    Py_XSETREF(attached, known ? Py_NewRef(producer) : NULL);
    Py_XSETREF(slow_telemetry, Py_NewRef(slow));
    Py_RETURN_NONE;
}

static PyObject *telemetry(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames) {
    if (slow_telemetry == NULL) /* before `init` */
        Py_RETURN_NONE;
    if (nargs != 1 || attached == NULL)
        return PyObject_Vectorcall(slow_telemetry, args, (size_t)nargs, kwnames);
    Values said = {args[0], kwnames, args + 1, kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames)};
    PyObject *producer = Py_NewRef(attached), *answer = Py_None;
    if (try_values((ProducerFields *)producer, &said)) {
        Py_INCREF(answer);
    } else {
        answer = PyObject_Vectorcall(slow_telemetry, args, (size_t)nargs, kwnames);
        if (answer != NULL)
            learn_series((ProducerFields *)producer, &said);
    }
    Py_DECREF(producer);
    return answer;
}

static PyMethodDef methods[] = {
    {"configure", configure, METH_VARARGS, "Tell of objects of context.py and logging."},
    {"attach", attach, METH_VARARGS, "Where values go from now on."},
    {"telemetry", (PyCFunction)(void (*)(void))telemetry, METH_FASTCALL | METH_KEYWORDS,
     "telemetry($module, values, /, **dims)\n--\n\n"
     "Numbers of this moment by name: `telemetry({\"loss\": 2.31, \"grad_norm\": 0.42}, "
     "layer=\"h.3\")`.\n\n"
     "They carry rank, iteration and metadata of the context, as lines do; keywords are "
     "dimensions.\nNever waits, never raises; a tensor on a device is refused (it would have to be "
     "waited for)."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "ranklog.produce._hot",
    .m_doc = "The compiled form of what runs for every line and value.",
    .m_size = -1,
    .m_methods = methods,
};

static int intern_names(void) {
#define NAME(name)                                                                                 \
    if ((names.name = PyUnicode_InternFromString(#name)) == NULL)                                  \
        return -1;
    NAME(args)
    NAME(asctime)
    NAME(call)
    NAME(callHandlers)
    NAME(exc_info)
    NAME(exc_text)
    NAME(filters)
    NAME(funcName)
    NAME(handle_by_python)
    NAME(handlers)
    NAME(iteration)
    NAME(levelno)
    NAME(line_by_python)
    NAME(lineno)
    NAME(message)
    NAME(msg)
    NAME(name)
    NAME(number)
    NAME(owner)
    NAME(parent)
    NAME(pathname)
    NAME(propagate)
    NAME(stack_info)
#undef NAME
    names.logRecordFactory = PyUnicode_InternFromString("_logRecordFactory");
    return names.logRecordFactory == NULL ? -1 : 0;
}

static int add_types(PyObject *module) {
    PyTypeObject *types[] = {&RingFieldsType, &CallFieldsType, &ProducerFieldsType,
                             &HandlerFieldsType, &LogMethodType};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0)
            return -1;
    return 0;
}

PyMODINIT_FUNC PyInit__hot(void) {
    configured.getframe = Py_XNewRef(PySys_GetObject("_getframe"));
    if (configured.getframe == NULL) {
        PyErr_SetString(PyExc_ImportError, "no sys._getframe");
        return NULL;
    }
    PyObject *module = intern_names() < 0 ? NULL : PyModule_Create(&definition);
    if (module != NULL &&
        (add_types(module) < 0 || PyModule_AddIntConstant(module, "VERSION", VERSION) < 0))
        Py_CLEAR(module);
    return module;
}
