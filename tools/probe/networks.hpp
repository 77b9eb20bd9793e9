// SPDX-License-Identifier: BSD-3-Clause
// The networks of remote reads that connections would find in this process (STRETTO_FABRIC).
#pragma once
#include <string>

std::string networks_json();
