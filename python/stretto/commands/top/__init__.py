# SPDX-License-Identifier: BSD-3-Clause
"""top: what the ranks of a running job are doing, and who waits for whom."""
