"""The clients: the C library, the Python client, the NCCL plugin."""
