"""What published papers print, beside what is computed here: one module a paper.

It computes and never draws or writes; `registry.PAPERS` has all of them.
"""
