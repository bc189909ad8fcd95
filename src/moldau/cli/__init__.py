"""The command `moldau`: one module a group of commands, imported when one of them runs."""
