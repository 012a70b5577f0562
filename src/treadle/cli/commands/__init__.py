"""The commands, a module each (those that decide on a paused run share one); `treadle.cli.app` lists them."""
