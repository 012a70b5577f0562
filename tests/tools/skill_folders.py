"""Folders with a SKILL.md for tests, and the cases on which the reference library and we are to agree."""

from pathlib import Path

HEAD = "name: my-skill\ndescription: A test skill\n"


def skill_in(folder: Path, name: str, head: str = "", body: str = "Do it.", **files: str | bytes) -> Path:
    """A skill `name` in `folder`; `files` have `__` for `/` in their names."""
    place = folder / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n{head}---\n{body}\n", "utf-8")
    for path, content in files.items():
        file = place / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


def _fields(more: str = "", head: str = HEAD) -> str:
    return f"---\n{head}{more}---\nBody\n"


CASES: list[tuple[str, str, str | bytes | None, bool]] = [
    # What the reference library's own tests say, then what they do not: a name, the folder, the file, whether valid.
    ("a valid one", "my-skill", _fields(), True),
    ("no SKILL.md", "my-skill", None, False),
    ("capital letters", "MySkill", _fields(head="name: MySkill\ndescription: x\n"), False),
    ("a long name", "a" * 70, _fields(head=f"name: {'a' * 70}\ndescription: x\n"), False),
    ("a leading hyphen", "-my-skill", _fields(head="name: -my-skill\ndescription: x\n"), False),
    ("two hyphens", "my--skill", _fields(head="name: my--skill\ndescription: x\n"), False),
    ("an underscore", "my_skill", _fields(head="name: my_skill\ndescription: x\n"), False),
    ("another folder", "wrong-name", _fields(), False),
    ("an unknown field", "my-skill", _fields("unknown_field: x\n"), False),
    ("all fields", "my-skill", _fields("license: MIT\ncompatibility: Python\nmetadata:\n  author: Test\n"), True),
    ("allowed tools", "my-skill", _fields("allowed-tools: Bash(jq:*) Bash(git:*)\n"), True),
    ("a Chinese name", "技能", _fields(head="name: 技能\ndescription: x\n"), True),
    ("a Russian name", "мой-навык", _fields(head="name: мой-навык\ndescription: x\n"), True),
    ("Russian capitals", "НАВЫК", _fields(head="name: НАВЫК\ndescription: x\n"), False),
    ("a long description", "my-skill", _fields(head=f"name: my-skill\ndescription: {'x' * 1100}\n"), False),
    ("the longest description", "my-skill", _fields(head=f"name: my-skill\ndescription: {'x' * 1024}\n"), True),
    ("long compatibility", "my-skill", _fields(f"compatibility: {'x' * 550}\n"), False),
    ("a decomposed name", "café", _fields(head="name: cafe\u0301\ndescription: x\n"), True),
    ("no head", "my-skill", "# No head\n", False),
    ("an open head", "my-skill", f"---\n{HEAD}", False),
    ("broken YAML", "my-skill", _fields(head="name: [invalid\ndescription: broken\n"), False),
    ("a list", "my-skill", "---\n- just\n- a\n- list\n---\nBody\n", False),
    ("no name", "my-skill", _fields(head="description: x\n"), False),
    ("no description", "my-skill", _fields(head="name: my-skill\n"), False),
    ("an empty description", "my-skill", _fields(head="name: my-skill\ndescription: ''\n"), False),
    ("a colon unquoted", "my-skill", _fields(head="name: my-skill\ndescription: Use when: PDFs\n"), False),
    ("a block text", "my-skill", _fields(head="name: my-skill\ndescription: >\n  a\n  b\n"), True),
    ("a list of tools in lines", "my-skill", _fields("allowed-tools:\n  - Read\n  - 123\n"), True),
    ("a list of tools in brackets", "my-skill", _fields("allowed-tools: [Read, Write]\n"), False),
    ("an anchor and its alias", "my-skill", _fields("license: &a MIT\ncompatibility: *a\n"), False),
    ("a tag", "my-skill", _fields("license: !!str MIT\n"), False),
    ("a tag that makes an object", "my-skill", _fields("license: !!python/object/apply:os.system [id]\n"), False),
    ("a name twice", "my-skill", _fields("name: my-skill\n"), False),
    ("a mapping in brackets", "my-skill", _fields("metadata: {a: b}\n"), False),
    ("compatibility that is no text", "my-skill", _fields("compatibility:\n  a: b\n"), False),
    ("a number for a name", "my-skill", _fields(head="name: 123\ndescription: x\n"), False),
    ("a number for a name and a folder", "123", _fields(head="name: 123\ndescription: x\n"), True),
    ("an empty head", "my-skill", "---\n---\n", False),
    ("a word for a head", "my-skill", "---\nfoo\n---\n", False),
    ("Windows' ends of lines", "my-skill", _fields().replace("\n", "\r\n"), True),
    ("a mark of the byte order", "my-skill", "\ufeff" + _fields(), False),
    ("UTF-16", "my-skill", _fields().encode("utf-16"), False),
    ("no text", "my-skill", b"---\n\xff\xfe---\n", False),
    ("a tab", "my-skill", _fields("\tlicense: x\n"), False),
    ("a merge", "my-skill", _fields("<<: x\n"), False),
    ("a comment", "my-skill", _fields("# comment\n"), True),
    ("quoted", "my-skill", _fields(head="name: \"my-skill\"\ndescription: 'x'\n"), True),
    ("a name with a capital field", "my-skill", _fields(head="Name: my-skill\ndescription: x\n"), False),
    ("a zero byte", "my-skill", _fields("license: \0\n"), False),
    ("billions of laughs", "my-skill", _fields("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"), False),
]


def put(folder: Path, name: str, content: str | bytes | None) -> Path:
    place = folder / name
    place.mkdir(parents=True)
    if content is not None:
        (place / "SKILL.md").write_bytes(content if isinstance(content, bytes) else content.encode())
    return place
