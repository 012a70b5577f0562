"""Agent Skills: folders with a `SKILL.md`, in the format of https://agentskills.io/specification.

frontmatter.py   the head of a SKILL.md, in a plain part of YAML
files.py         the files of a folder, and no others
folder.py        one folder, and what is wrong with it
active.py        which skills are active in a conversation, and what they allow
skill.py         many folders as one `Skill`: what the model is told of them, and the tools that read them
"""
