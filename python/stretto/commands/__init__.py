# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one file each."""
