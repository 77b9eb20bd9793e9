# SPDX-License-Identifier: BSD-3-Clause
"""The C++ part: building it, and asking its programs."""
