# SPDX-License-Identifier: BSD-3-Clause
"""The model of a machine: profiles, fits, predictions, and tuning where predictions are uncertain."""
