# SPDX-License-Identifier: BSD-3-Clause
"""What every other room uses, and what uses none of them."""
