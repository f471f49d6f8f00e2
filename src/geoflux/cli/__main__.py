"""``python -m geoflux.cli`` is ``geoflux``."""

from geoflux.cli.main import main

main()
