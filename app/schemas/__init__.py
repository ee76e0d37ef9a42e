"""JSON in and out, one file a resource: `to_domain` for inputs, plain documents for outputs.

Inputs are strict: unknown fields, wrong types and numbers that are not finite are refused. Outputs
have no defaults: every field is always there. Output documents are built as dictionaries and
written by orjson, because validating what was just computed would cost more than computing it; the
models beside them are what the OpenAPI document publishes, and tests hold the two together.
"""
