"""`moldau log`: what is in the files of a broker that does not run."""
