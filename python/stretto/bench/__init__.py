# SPDX-License-Identifier: BSD-3-Clause
"""Measuring: programs, figures, tables and pictures."""
