"""The linear program for k fragments, solved by our engine and by each library called directly.

Every other side is what someone would write who knows that library well and states the recurrence
of Wang98 (1)-(3) as it stands: 1 + (k-1)n + k(n-1) rows and one for the bytes; no row that another
one implies, no Python object that its interface can do without.
"""
