"""JSON in and out, one file a resource: functions between `contract` and the domain.

What is asked and answered is declared in `contract`, strictly: unknown fields, wrong types and
numbers that are not finite are refused. Functions here make the domain's question of a request
(`table_scope`), and what is sent of a result (`table_out`). orjson writes the objects as they are,
because validating what was just computed would cost more than computing it; the OpenAPI document
has their schemas; and `read_output` reads a stored body back as the object that it was written
from.
"""
