# SPDX-License-Identifier: BSD-3-Clause
"""The C++ part of Stretto: building it, and asking its programs."""
