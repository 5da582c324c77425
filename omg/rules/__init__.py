"""The Observer without a model: rules that quote people's wishes, traits, likes, decisions and plans."""
