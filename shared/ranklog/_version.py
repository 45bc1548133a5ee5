"""The version, alone in its module so that building needs no import of the package."""

VERSION = "0.1.0"
