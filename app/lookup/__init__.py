"""Look-ups from memory: the tables that are held, and the callable in front of the framework.

Choices  which table each profile and revision answers from, as the database last said
Shelf    the tables that are held, bounded in bytes
Front    answers a request from both, or leaves it to the framework
Lookups  all three of a running service, and what keeps the choices fresh
"""
