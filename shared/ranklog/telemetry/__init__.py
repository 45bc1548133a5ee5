"""Series of numbers over iterations: names, down-sampling, aggregates, detection. Pure.

*NaN, infinities and what was not measured are three things, and none of them is ever a number.*
"""
