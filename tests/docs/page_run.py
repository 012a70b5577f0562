"""Runs the python blocks of one page in this process: `page_run.py PAGE`; see `test_docs.py`.

It loads nothing that a page does not: there are a hundred pages, and pytest takes as long to load as most of them run.
"""

import ast
import asyncio
import inspect
import os
import sys
import traceback
from pathlib import Path

from pages import blocks

OWN_SERVER = "127.0.0.1:8080"
OWN_DATABASE = "postgresql://treadle:secret@db.example/treadle"


def run_page(page: Path) -> None:
    """Runs a page's blocks; ends the process with the place and the traceback of the first that fails."""
    namespace = {"__name__": "__main__"}
    server = os.environ.pop("LOCAL_SERVER", OWN_SERVER)
    database = os.environ.pop("LOCAL_DATABASE", OWN_DATABASE)
    with asyncio.Runner() as runner:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.skip:
                continue
            try:
                # Empty lines before the code, so that tracebacks have the page's own line numbers.
                code = block.code.replace(OWN_SERVER, server).replace(OWN_DATABASE, database)
                source = "\n" * (block.line - 1) + code
                compiled = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                if compiled.co_flags & inspect.CO_COROUTINE:
                    runner.run(eval(compiled, namespace))
                else:
                    exec(compiled, namespace)
            except BaseException as error:
                steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename != __file__]
                here = [step.lineno for step in steps if step.filename == str(page)]
                line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else here[-1] if here else None
                what = "".join(traceback.format_list(steps) + traceback.format_exception_only(error))
                sys.exit(f"{page}:{line or block.line}: this block fails\n{what}")


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
