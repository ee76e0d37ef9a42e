"""Persistence: the only room that knows SQL. `models.session.create_store` is the door.

Repositories take and return domain objects, or the frozen records of `models.records`; rows never
leave this room. Nothing is opened, and no database driver imported, when it is imported.
"""
