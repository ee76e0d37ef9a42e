"""Persistence: the only package that knows SQL.

`models.session.create_store` is the entry point. Repositories take and return domain objects, or
the frozen records of `models.records`; rows never leave this package. Importing it opens nothing,
and imports no database driver.
"""
