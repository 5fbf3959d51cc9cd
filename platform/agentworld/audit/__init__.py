"""Questions over what was registered, served and written down; answers and no opinions."""
