"""Benchmarks, with their results under version control. Imported by nobody.

    python -m bench                    every case; writes bench/results and docs/benchmarks.md
    python -m bench engines --quick    one case in seconds; prints, writes nothing
    python -m bench profile engines    where the time of a case's typical piece of work goes

A case is one file in bench/cases with a SPEC. Sides that are compared are run in turns, so that a
drift of the machine hits all of them alike, and quality is asserted beside time.
"""
