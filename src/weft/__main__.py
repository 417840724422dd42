"""The command line's door: errors of the user become one line and an exit code."""

import os
import sys

from weft.errors import WeftError


def main() -> None:
    """Run a verb; exit with the code that its outcome has."""
    from weft.cli import app

    try:
        app()
    except WeftError as error:
        print(f"weft: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("weft: left at once", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
