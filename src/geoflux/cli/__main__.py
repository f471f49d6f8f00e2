"""``python -m geoflux.cli`` is ``geoflux``."""

from geoflux.cli.main import main

if __name__ == "__main__":
    main()
