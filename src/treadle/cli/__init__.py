"""The command line: `treadle`, also as `python -m treadle`.

Everything it does is done with the library's public API; nothing imports it. `app` has the list of commands, `commands`
one module for each, which is imported when it is used, so that `treadle --help` stays fast. Needs the `cli` extra.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line on this process's arguments and ends the process with its exit code."""
    try:
        from treadle.cli.app import leave, run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("the command line needs a few more packages: pip install 'treadle[cli]'", file=sys.stderr)
        sys.exit(2)
    leave(run(sys.argv[1:]))
