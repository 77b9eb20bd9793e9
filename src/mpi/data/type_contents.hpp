// SPDX-License-Identifier: BSD-3-Clause
// What the host says about a datatype: how it was made.
#pragma once
#include <mpi.h>

namespace stretto::mpi {

// A type's constructor and its arguments. The host gives the arguments of large-count constructors
// as counts, those of the others as integers and addresses. `values` holds either in the standard's
// order: integers, then addresses.
struct TypeContents {
  int combiner = MPI_COMBINER_NAMED;
  MPI_Count* values = nullptr;
  MPI_Datatype* types = nullptr;
  MPI_Count type_count = 0;

  TypeContents() = default;
  TypeContents(const TypeContents&) = delete;
  TypeContents& operator=(const TypeContents&) = delete;
  ~TypeContents();

  bool read(MPI_Datatype type);
  bool read_envelope(MPI_Datatype type);
  [[nodiscard]] bool named() const { return combiner == MPI_COMBINER_NAMED; }
  // The parametrised Fortran types. They are predefined, too, but have no name.
  [[nodiscard]] bool fortran() const {
    return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
           combiner == MPI_COMBINER_F90_INTEGER;
  }

 private:
  bool read_arguments(MPI_Datatype type, int* integers, MPI_Aint* addresses, MPI_Count* counts);
  void merge(const int* integers, const MPI_Aint* addresses, const MPI_Count* counts);

  // How many arguments of each kind the constructor had.
  struct Numbers {
    MPI_Count integers, addresses, counts, types;
  } numbers{};
};

}  // namespace stretto::mpi
