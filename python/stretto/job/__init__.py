# SPDX-License-Identifier: BSD-3-Clause
"""Recorded jobs: where their files are, what they say, and what a replay says of them."""
