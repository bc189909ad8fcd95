"""Groups of the newer consumer protocol (KIP-848): the coordinator assigns, and members follow."""
