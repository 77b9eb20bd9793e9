# SPDX-License-Identifier: BSD-3-Clause
"""top: what the ranks of a running job do, and which ranks wait for which."""
