"""`moldau dead-letters`: records that a program could not process, in the topic that it sent them to."""
