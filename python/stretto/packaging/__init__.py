# SPDX-License-Identifier: BSD-3-Clause
"""Stretto for other machines and other users: what packages are made of, and what removes them."""
