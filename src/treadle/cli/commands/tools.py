"""`treadle tools`: the tools that an agent is given."""

import click

from treadle.cli import completion
from treadle.cli.catalogs import sources_option
from treadle.cli.servers import mcp_option, tools_of
from treadle.cli.table import print_table
from treadle.cli.terminal import clean, print_json, shorten
from treadle.cli.toolset import gather
from treadle.tools import Tool, did_you_mean, nearest


@click.command(short_help="List the tools and their schemas.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.tool_names)
@click.option(
    "--skill", "-s", multiple=True, metavar="NAME", shell_complete=completion.skills,
    help="A skill, as for treadle ask; repeatable. Default: every built-in one.",
)  # fmt: skip
@click.option(
    "--tools", "-t", multiple=True, metavar="MODULE[:NAME]", shell_complete=completion.tools,
    help="Your tools, as for treadle ask; repeatable.",
)  # fmt: skip
@sources_option
@mcp_option
@click.option("--schema", is_flag=True, help="Print what the model is told of them: JSON, with the input schemas.")
@click.option(
    "--prompt",
    metavar="FORMAT",
    help="Print what a model without tool calling is told of them: json, react or tags (see text:provider:model).",
)
@click.option("--json", "as_list", is_flag=True, help="Print a JSON list.")
def tools(
    names: tuple[str, ...],
    skill: tuple[str, ...],
    tools: tuple[str, ...],
    sources: str | None,
    mcp: tuple[str, ...],
    schema: bool,
    prompt: str | None,
    as_list: bool,
) -> int:
    """List the tools NAME, or all that these options name; without options all that are built in.

    A model is given none of these unless you name them.
    """
    if (prompt is not None) + schema + as_list > 1:
        raise click.UsageError("--schema, --prompt and --json are three forms of the same; name one")
    named = [] if mcp and not (skill or tools or sources) else gather(skill, tools, sources).all_tools
    found = [*named, *tools_of(mcp)]
    known = [tool.name for tool, _ in found]
    for name in names:
        if name not in known:
            raise click.UsageError(
                f"there is no tool {name!r}{did_you_mean(nearest(name, known))} (there are: {', '.join(known)})"
            )
    found = [(tool, owner) for tool, owner in found if not names or tool.name in names]
    if prompt is not None:
        click.echo(clean(_prompt(prompt, [tool for tool, _ in found])))
    elif schema:
        print_json([tool.spec for tool, _ in found])
    elif as_list:
        print_json([
            {"name": tool.name, "skill": owner, "effect": tool.effect, "needs_approval": bool(tool.needs_approval),
             "external": tool.external, "description": tool.description}
            for tool, owner in found
        ])  # fmt: skip
    else:
        rows = [
            (
                tool.name,
                tool.effect,
                "asks" if tool.needs_approval else "",
                owner,
                shorten(_first(tool.description), 100),
            )
            for tool, owner in found
        ]
        print_table(["tool", "effect", "approval", "skill", "description"], rows)
    return 0


def _prompt(format: str, tools: list[Tool]) -> str:
    """The instructions of a format, as `TextTools` gives them to a model after those of the agent."""
    from treadle.models.text_tools.model import FORMATS, instructions

    known = next((name for name in FORMATS if name == format), None)
    if known is None:
        raise click.BadParameter(
            f"there is no format {format!r} (there are: {', '.join(FORMATS)})", param_hint="--prompt"
        )
    return instructions(known, tools)


def _first(text: str) -> str:
    """The first paragraph."""
    return text.strip().partition("\n\n")[0]
