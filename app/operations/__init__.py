"""What can be asked of the service, one file a verb: prepare, run, keep."""
