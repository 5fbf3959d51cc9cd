"""Screens as text: the domain of logs of phones, browsers and desktops. It has no environment."""
