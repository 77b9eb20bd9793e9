// SPDX-License-Identifier: BSD-3-Clause
// Which functions of its MPI, beyond the standard, the program calls (MPIX_).
//
// Some of them take requests in ways that Stretto does not see: MPIX_Continue calls a function of
// the program when a request has ended. Nobody knows what functions of later MPIs do. So
// imports.cpp lists those that do no harm. Any other one makes STRETTO_NONBLOCKING=auto leave calls
// with requests to the MPI (nonblocking.cpp).
#pragma once
#include <cstddef>

namespace stretto::mpi {

// Whether an object of the program imports a function that forbids to serve calls with requests.
// Its name is cut to `capacity`. Any thread may ask. It looks again if objects were loaded since.
bool find_import_that_forbids_requests(char* name, std::size_t capacity);

}  // namespace stretto::mpi
