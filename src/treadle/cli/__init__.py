"""The command line: `treadle`, also as `python -m treadle`.

Everything it does is done with the library's public API; nothing imports it. `app` has the list of commands, `commands`
one module for each, which is imported when it is used, so that `treadle --help` stays fast. Needs the `cli` extra.
"""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line on this process's arguments and ends the process with its exit code."""
    if next((one for one in sys.argv[1:] if not one.startswith("-")), None) == "worker":
        # Until it works, which its agent's imports may put off for long, it has no run that would have to pause.
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: os._exit(0))
    try:
        from treadle.cli.app import leave, run, write_whole

        write_whole()
        leave(run(sys.argv[1:]))
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("the command line needs a few more packages: pip install 'treadle[cli]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        # Before a command has begun, or after it; what is still being loaded is not waited for.
        with suppress(OSError):
            os.write(2, b"interrupted\n")
        os._exit(130)
