"""Lookups answered from memory, before the framework sees the request.

ActiveTables  which table each profile and revision answers from, as the database had it last
TableCache    the tables in memory, bounded in bytes
FastPath      answers a request from both, or leaves it to the framework
Lookups       all three of a running service, and what keeps the active tables fresh
"""
