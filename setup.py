"""The optional compiled form of the producer's hot path; all else is in pyproject.toml.

Where it can't be built, or $RANKLOG_COMPILED is 0, ranklog installs without it and loses some speed.
"""

import os
import platform
import sys
import sysconfig
from glob import glob

from setuptools import Extension, setup

# See shared/ranklog/produce/compiled.py.
IS_WANTED = (
    os.environ.get("RANKLOG_COMPILED") != "0"
    and platform.python_implementation() == "CPython"
    and (3, 11) <= sys.version_info < (3, 14)  # the versions that it was tried on
    and sys.byteorder == "little"
    and os.name == "posix"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
HOT = Extension(
    "ranklog.produce._hot",
    sources=sorted(glob("shared/ranklog/produce/hot/*.c")),
    depends=["shared/ranklog/produce/hot/hot.h"],
    extra_compile_args=["-O2", "-fvisibility=hidden"],
    optional=True,
)
setup(ext_modules=[HOT] if IS_WANTED else [])
