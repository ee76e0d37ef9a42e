"""Golden files of everything that the product writes, over a fixed set of questions.

`python -m tests.golden.write` writes them anew; a change of names alone is listed in renames.json
instead, so that the files show what else has changed.
"""
