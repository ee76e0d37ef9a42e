"""JSON in and out, one file a resource: `to_domain` for inputs, `of` for outputs.

Inputs are pydantic models, and strict: unknown fields, wrong types and numbers that are not finite
are refused. Outputs are frozen dataclasses without defaults: every field is always there. Their
fields are the only declaration of what is sent. orjson writes the objects as they are, because
validating what was just computed would cost more than computing it; the OpenAPI document has their
schemas; and `read_output` reads a stored body back as the object that it was written from.
"""
