"""The use cases, one verb a file. They know the rooms below and nothing of the web.

Entrances (HTTP, command line, job runner) parse, call one flow, and show what comes back.
"""
