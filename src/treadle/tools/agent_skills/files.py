"""Files: what is read of a skill's folder, and nothing outside of it.

A path is taken apart by `/` and followed name by name, from the folder's own descriptor where the system has such, so
that nothing which changes meanwhile leads out. No link is followed, not even to a place inside; a name counts only as
it is written in its folder, upper and lower case included; and only plain files are opened: a pipe would make the
reader wait for ever.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from treadle.tools.errors import ToolError

LARGEST = 5_000_000
"""Bytes of a file that is read."""

MOST_LISTED = 100
"""Files of a folder that are listed."""

LONGEST_PATH = 1_000
"""Characters of the path of a file that is read, or listed."""

_DEEPEST = 6
_MOST_SEEN = 2000
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and os.listdir in os.supports_fd


def read_bytes(folder: Path, path: str, largest: int = LARGEST) -> bytes:
    """The bytes of the file at `path` in `folder`, which is named as it resolves.

    Raises:
        ToolError: the path leads elsewhere, there is no such plain file, or it has more than `largest` bytes.
    """
    names = _names(path)
    try:
        _require_in_place(folder)
        descriptor = _opened(folder, names) if _BY_DESCRIPTOR else _opened_by_path(folder, names)
    except OSError as error:
        raise _no_file(path, error) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise ToolError(f"{path!r:.200} is no plain file", argument="path", given=path[:200])
    with open(descriptor, "rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        size = max(found.st_size, len(data))
        raise ToolError(f"{path!r:.200} has {size:,} bytes; a file that is read has at most {largest:,}")
    return data


def read_text(folder: Path, path: str, largest: int = LARGEST) -> str:
    """The text of the file at `path` in `folder`.

    Raises:
        ToolError: as `read_bytes`; or it is not text in UTF-8.
    """
    data = read_bytes(folder, path, largest)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ToolError(f"{path!r:.200} is not text in UTF-8: {len(data):,} bytes of something else")
    return text


def listed(folder: Path) -> list[str]:
    """The paths of the files in `folder`, in order, without the SKILL.md, hidden ones, links, and those that are not
    read by such a path; `MOST_LISTED` at most.

    Of a folder that is deeper, or has more, than anybody would list, what comes first is looked at.
    """
    try:
        _require_in_place(folder)
    except OSError:
        return []
    found = sorted(path for path in _walked(folder, "", [_MOST_SEEN], 0) if _followed(path) is not None)
    return [path for path in found if path not in ("SKILL.md", "skill.md")][:MOST_LISTED]


def _walked(folder: Path, before: str, left: list[int], depth: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        left[0] -= 1
        if left[0] < 0:
            return
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_file(follow_symlinks=False) and _is_text(entry.name):
            yield before + entry.name
        elif entry.is_dir(follow_symlinks=False) and depth < _DEEPEST:
            yield from _walked(Path(entry.path), f"{before}{entry.name}/", left, depth + 1)


def _is_text(name: str) -> bool:
    """Whether a name can be said to a model: what is no text, or has lines of its own, is not listed."""
    return name.isprintable() and "/" not in name


def _names(path: str) -> list[str]:
    names = _followed(path)
    if names is None:
        raise ToolError(
            f"{path!r:.200} is no path of a file in the skill's folder; give one such as 'references/guide.md'",
            argument="path",
            given=path[:200],
        )
    return names


def _followed(path: str) -> list[str] | None:
    """The names of a path that is followed; None if it leads out, or is odd."""
    names = path.split("/")
    while names and names[0] == ".":
        names = names[1:]
    leads_out = not names or any(name in ("", ".", "..") for name in names)
    too_long = len(path) > LONGEST_PATH or len(names) > 2 * _DEEPEST
    odd = "\0" in path or "\\" in path or ":" in "".join(names[:1])
    return None if leads_out or too_long or odd else names


def _require_in_place(folder: Path) -> None:
    """Raises `OSError` where what was a folder, or one above it, has become a link that leads elsewhere."""
    if folder.resolve(strict=True) != folder:
        raise OSError(errno.ELOOP, "its folder has become a link")


def _opened(folder: Path, names: list[str]) -> int:
    """A descriptor of the file, reached from the folder's own, name by name."""
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for i, name in enumerate(names):
            if name not in os.listdir(inside):
                raise FileNotFoundError(errno.ENOENT, "there is no such file")
            last = i == len(names) - 1
            # A pipe that nobody writes to is opened too, and then refused, instead of being waited for.
            flags = os.O_NONBLOCK if last else os.O_DIRECTORY
            further = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | flags, dir_fd=inside)
            os.close(inside)
            inside = further
        return inside
    except BaseException:
        os.close(inside)
        raise


def _opened_by_path(folder: Path, names: list[str]) -> int:
    """Likewise where there are no descriptors of folders: what the path resolves to must be what it says."""
    found = folder.joinpath(*names)
    if found.resolve(strict=True) != found:
        raise OSError(errno.ELOOP, "it is a link")
    if not stat.S_ISREG(found.lstat().st_mode):
        raise OSError(errno.EISDIR, "it is no plain file")
    return os.open(found, os.O_RDONLY | getattr(os, "O_BINARY", 0))


def _no_file(path: str, error: OSError) -> ToolError:
    why = {
        errno.ELOOP: "is a link, which is not followed",
        errno.ENOTDIR: "leads through what is no folder, or a link, which is not followed",
        errno.ENOENT: "is not in the skill's folder",
        errno.EISDIR: "is a folder",
        errno.ENXIO: "is no plain file",
    }.get(error.errno or 0, f"cannot be read ({error.strerror or type(error).__name__})")
    return ToolError(f"{path!r:.200} {why}", argument="path", given=path[:200])
