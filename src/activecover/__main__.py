"""``python -m activecover``."""

import sys

from activecover.cli import main

sys.exit(main())
