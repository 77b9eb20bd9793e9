# SPDX-License-Identifier: BSD-3-Clause
from stretto.cli import main

if __name__ == "__main__":
    main()
