"""The version that is installed; on the package index the distribution is called weft-text."""

from importlib import metadata

DISTRIBUTION = "weft-text"
SOURCE_TREE = "source tree"


def installed_version() -> str:
    """Return the distribution's version; `SOURCE_TREE` where it is not installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return SOURCE_TREE
