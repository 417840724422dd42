"""The license of a model as the cards of the Hugging Face Hub name it.

Source: the Hub's documentation, page "Licenses", read in August 2026.
"""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from weft.errors import UsageError

OTHER = "other"
# of the model that comes with Weft, and of the built-in sentences that it has learned from
OF_DEMO = "mit"
DEMO_TERMS = "MIT: sentences that Weft's own grammar makes"
LICENSE = "LICENSE"  # the file of a license that is no address
_IDENTIFIERS = """
afl-3.0 agpl-3.0 apache-2.0 apple-amlr apple-ascl artistic-2.0 bigcode-openrail-m
bigscience-bloom-rail-1.0 bigscience-openrail-m bsd bsd-2-clause bsd-3-clause
bsd-3-clause-clear bsl-1.0 c-uda cc cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0
cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0
cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0
cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0
creativeml-openrail-m deepfloyd-if-license ecl-2.0 epl-1.0 epl-2.0 etalab-2.0
eupl-1.1 eupl-1.2 fair-noncommercial-research-license gemma gfdl gpl gpl-2.0 gpl-3.0
grok2-community h-research intel-research isc lgpl lgpl-2.1 lgpl-3.0 lgpl-lr llama2
llama3 llama3.1 llama3.2 llama3.3 llama4 lppl-1.3c mit mpl-2.0 ms-pl ncsa odbl
odc-by ofl-1.1 openmdw-1.0 openmdw-1.1 openrail openrail++ osl-3.0 pddl postgresql
unknown unlicense wtfpl zlib
"""
KNOWN = tuple(_IDENTIFIERS.split())
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_HOW_OTHER = (
    "any other is given by a name and where it is to be read: "
    '--license "NAME https://..." or --license "NAME LICENSE.txt"'
)


@dataclass(frozen=True)
class License:
    """A license: `id` is the Hub's. One that it does not know is `other`, with a name, and a link:
    an address, or the name of the file that `file` is copied to.
    """

    id: str
    name: str = ""
    link: str = ""
    file: Path | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.link})" if self.name else self.id


def license_of(stated: str) -> License | None:
    """Return the license that a person stated, as SPDX or the Hub writes it, or as a name with an
    address or a file; None where nothing was stated.

    Raises UsageError for one that the Hub does not know.
    """
    words = stated.split()
    if not words:
        return None
    known = "-".join(words).lower()
    if known in KNOWN:
        return License(known)
    *names, link = words
    name = "-".join(names).lower()
    is_address = link.startswith(("https://", "http://"))
    is_file = not is_address and Path(link).is_file()
    if not is_address and not is_file and name and Path(link).suffix:
        raise UsageError(f"--license {stated!r:.80}: there is no file {link}")
    if not is_address and not is_file:
        raise UsageError(f"--license {stated!r:.80}: {_why_unknown(known)}")
    if name in KNOWN:
        raise UsageError(
            f"--license {stated!r:.80}: the Hub knows {name}: leave out {link}"
        )
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--license {stated!r:.80}: the name before {link} has letters, digits, dots and hyphens, such as mine-1.0"
        )
    if is_address:
        return License(OTHER, name, link)
    return License(OTHER, name, LICENSE, Path(link))


def _why_unknown(name: str) -> str:
    near = difflib.get_close_matches(name, KNOWN, n=3, cutoff=0.5)
    if not near:
        near = ["apache-2.0", "mit", "cc-by-4.0"]
    return f"the Hub knows no such license (near: {', '.join(near)}); {_HOW_OTHER}"
