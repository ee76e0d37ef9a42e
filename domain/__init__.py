"""The domain types of Sluice: frozen, validated, units in their names. Standard library only."""
