"""The order of the examples in the gallery, and how they run.

Sphinx keeps names of functions in its cache, not functions.
"""


def seeded(gallery_conf, script_vars) -> list[str]:
    """Examples take a seed as their argument, so that the gallery prints the same output each time."""
    return ["1"]


class Order:
    """The first steps first, the others by their names."""

    def __init__(self, directory: str) -> None:
        pass

    def __call__(self, filename: str) -> tuple[bool, str]:
        return filename != "quickstart.py", filename
