"""Who may do what, and how much: decisions about the rights that requests name."""
