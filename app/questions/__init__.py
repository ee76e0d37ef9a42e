"""What can be asked, as values: checked, prepared, concluded, found in the store and kept there.

Nothing here knows HTTP, pages or terminals: operations run it, schemas read it.
"""
