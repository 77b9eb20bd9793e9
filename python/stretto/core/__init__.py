# SPDX-License-Identifier: BSD-3-Clause
"""Console, paths, units and other basics that every room uses."""
