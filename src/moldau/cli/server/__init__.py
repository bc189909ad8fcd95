"""`moldau server`: a broker is started, or its metadata made before its first start."""
