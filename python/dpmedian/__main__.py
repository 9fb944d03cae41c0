"""`python -m dpmedian` is the command `dpmedian`."""

import sys

from dpmedian.cli import main

sys.exit(main())
