// SPDX-License-Identifier: BSD-3-Clause
// The outcomes of a call. The mpi layer translates them to MPI error classes. No layer below it
// knows MPI's numbers.
#pragma once
#include <cstdint>

namespace stretto {

enum class [[nodiscard]] Status : std::uint8_t {
  ok,
  truncated,     // this rank's receive buffer is smaller than the message: MPI_ERR_TRUNCATE
  peer_failed,   // a peer published a poisoned header because it could not do its part: MPI_ERR_OTHER
  peer_gone,     // a peer has ended, finalized or freed the communicator, and this call needs it: MPI_ERR_OTHER
  peer_lost,     // a peer on another node has died or its connection is gone, and this call needs it: MPI_ERR_OTHER
  not_moved,     // the MPI failed to move a message of Stretto's: MPI_ERR_OTHER
  mismatch,      // the peer is in another collective or call than this rank: MPI_ERR_OTHER
  other_root,    // the peer is in the same call but names another root: MPI_ERR_ROOT
  other_op,      // or another operation: MPI_ERR_OP
  other_type,    // or other elements: MPI_ERR_TYPE
  other_length,  // or another length: MPI_ERR_TRUNCATE
  no_memory,     // MPI_ERR_NO_MEM
  unavailable,   // the system refuses a capability (descriptor passing, memfd, mapping)
  invalid,       // this rank cannot do its part; the mpi layer knows why and raises the class
};

}  // namespace stretto
