"""`moldau registry` and `moldau schemas`: a registry, and what is in one."""
