"""What one setting costs on a workload, and which one costs the least."""
