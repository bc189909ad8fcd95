"""What every page needs: requests and answers as values, guards, sessions, templates, assets."""
