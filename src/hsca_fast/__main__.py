"""`python -m hsca_fast` is the `hsca` command."""

import sys

from hsca_fast.cli import main

sys.exit(main())
