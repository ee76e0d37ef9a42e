"""Client of the Sluice service, and reader of its table files."""

__version__ = "0.1.0"
