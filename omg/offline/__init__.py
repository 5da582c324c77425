"""The Observer without a model: rules."""
