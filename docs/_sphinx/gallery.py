"""The order of the examples in the gallery, and the arguments with which they run.

Sphinx stores the names of functions in its cache, and not the functions.
"""


def seeded(gallery_conf, script_vars) -> list[str]:
    """Examples take a seed as their argument, so that the gallery prints the same output each time."""
    return ["1"]


class Order:
    """Sort the quickstart first, and the other examples by their names."""

    def __init__(self, directory: str) -> None:
        pass

    def __call__(self, filename: str) -> tuple[bool, str]:
        return filename != "quickstart.py", filename
