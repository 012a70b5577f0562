"""`treadle help`: what a command does, as its `--help` tells it."""

import click


@click.command(short_help="Tell what there is, or what a command does.")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help(ctx: click.Context, /, words: tuple[str, ...]) -> int:
    """Tell which commands there are, or what COMMAND does: treadle help ask, treadle help runs export."""
    context = ctx.find_root()
    for word in words:
        group = context.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{context.command_path} has no commands of its own", ctx)
        # Resolved, as the group of all commands loads one when it is used.
        name, command, _ = group.resolve_command(context, [word])
        if command is not None:
            context = click.Context(command, parent=context, info_name=name, **command.context_settings)
    click.echo(context.get_help())
    return 0
