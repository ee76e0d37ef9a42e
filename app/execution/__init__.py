"""How work runs outside the asking process: the protocol of engines, and the local one.

Here are no questions and no database: operations come as pickled work with limits.
"""
