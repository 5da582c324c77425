"""The Observer without a model: rules that quote what people wish, are, like, decide and plan."""
