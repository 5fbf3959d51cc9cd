"""Screens as text: the domain of logs of phones, browsers and desktops. Nothing opens one live."""
