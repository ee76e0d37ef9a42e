"""What is sent and answered: frozen dataclasses of the standard library alone, and limits.

The service checks them by pydantic, which calls the methods named `__get_pydantic_...__`; clients
read them by their annotations.
"""
