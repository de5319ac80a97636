"""``python -m activecover``."""

import sys

from activecover.cli import main

if __name__ == "__main__":
    sys.exit(main())
