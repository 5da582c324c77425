"""
The configuration of a home.

    sections   omg.toml's sections and keys, each with its default and its check
    file       read omg.toml and OMG_* variables, write single values, find the home
"""
