"""Persistence: the only package that knows SQL. Its entry point is `models.session.create_store`.

Repositories take and return domain objects, or the frozen records of `models.records`; rows never
leave this package. Nothing is opened, and no database driver imported, when it is imported.
"""
