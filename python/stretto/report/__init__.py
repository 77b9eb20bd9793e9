# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: one HTML file, made from the library's statistics."""
