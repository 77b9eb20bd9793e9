# SPDX-License-Identifier: BSD-3-Clause
"""Measuring programs, the figures that follow, and their tables and pictures."""
