// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/type_contents.hpp"

#include <cstddef>
#include <cstdlib>

#include "mpi/host/host.hpp"

namespace stretto::mpi {
namespace {

// Whether a type from MPI_Type_get_contents must not be freed.
bool is_permanent(MPI_Datatype type) {
  TypeContents contents;
  return !contents.read_envelope(type) || contents.named() || contents.fortran();
}

template <class T>
T* allocate(MPI_Count count) {
  return static_cast<T*>(std::malloc((static_cast<std::size_t>(count) + 1) * sizeof(T)));
}

}  // namespace

// MPI_Type_get_contents gives new references to the types inside.
TypeContents::~TypeContents() {
  for (MPI_Count i = 0; i < type_count; ++i) {
    if (!is_permanent(types[i])) host().Type_free(&types[i]);
  }
  std::free(types);
  std::free(values);
}

bool TypeContents::read_envelope(MPI_Datatype type) {
#if STRETTO_LARGE_COUNT
  if (host().Type_get_envelope_c) {
    return host().Type_get_envelope_c(type, &numbers.integers, &numbers.addresses, &numbers.counts, &numbers.types,
                                      &combiner) == MPI_SUCCESS;
  }
#endif
  int integers = 0;
  int addresses = 0;
  int datatypes = 0;
  if (host().Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner) != MPI_SUCCESS) return false;
  numbers = {integers, addresses, 0, datatypes};
  return true;
}

bool TypeContents::read_arguments(MPI_Datatype type, int* integers, MPI_Aint* addresses,
                                  [[maybe_unused]] MPI_Count* counts) {
#if STRETTO_LARGE_COUNT
  if (host().Type_get_contents_c) {
    return host().Type_get_contents_c(type, numbers.integers, numbers.addresses, numbers.counts, numbers.types,
                                      integers, addresses, counts, types) == MPI_SUCCESS;
  }
#endif
  return host().Type_get_contents(type, static_cast<int>(numbers.integers), static_cast<int>(numbers.addresses),
                                  static_cast<int>(numbers.types), integers, addresses, types) == MPI_SUCCESS;
}

// MPI_Type_create_subarray_c and _darray_c have some integers before their counts and some behind.
void TypeContents::merge(const int* integers, const MPI_Aint* addresses, const MPI_Count* counts) {
  const MPI_Count before = combiner == MPI_COMBINER_SUBARRAY ? 1 : combiner == MPI_COMBINER_DARRAY ? 3 : 0;
  MPI_Count* value = values;
  MPI_Count i = 0;
  for (; i < numbers.integers && i < before; ++i) *value++ = integers[i];
  for (MPI_Count k = 0; k < numbers.counts; ++k) *value++ = counts[k];
  for (; i < numbers.integers; ++i) *value++ = integers[i];
  for (MPI_Count k = 0; k < numbers.addresses; ++k) *value++ = addresses[k];
}

bool TypeContents::read(MPI_Datatype type) {
  if (!read_envelope(type)) return false;
  if (named() || fortran()) return true;
  int* integers = allocate<int>(numbers.integers);
  MPI_Aint* addresses = allocate<MPI_Aint>(numbers.addresses);
  MPI_Count* counts = allocate<MPI_Count>(numbers.counts);
  values = allocate<MPI_Count>(numbers.integers + numbers.addresses + numbers.counts);
  types = allocate<MPI_Datatype>(numbers.types);
  bool good = integers && addresses && counts && values && types;
  good = good && read_arguments(type, integers, addresses, counts);
  if (good) {
    type_count = numbers.types;
    merge(integers, addresses, counts);
  }
  std::free(integers);
  std::free(addresses);
  std::free(counts);
  return good;
}

}  // namespace stretto::mpi
