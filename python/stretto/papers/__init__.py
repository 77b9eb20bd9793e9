# SPDX-License-Identifier: BSD-3-Clause
"""What the papers behind Stretto measured, repeated on this machine: `stretto bench --suite paper`."""
