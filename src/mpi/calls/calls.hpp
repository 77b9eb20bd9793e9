// SPDX-License-Identifier: BSD-3-Clause
// The hand-written side of the collectives: what the wrappers call. This file does not include
// mpi.h.
#pragma once
#include "mpi/state/call.hpp"

namespace stretto::mpi {

// Each function serves the call and returns true; call.code is the result. If it returns false, the
// wrapper calls the host's function and then host_done.
bool barrier(Call& call, Handle comm);
bool bcast(Call& call, void* buffer, std::int64_t count, Handle type, int root, Handle comm);
bool gather(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
            std::int64_t receive_count, Handle receive_type, int root, Handle comm);
bool gatherv(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive, CountArray counts,
             CountArray displs, Handle receive_type, int root, Handle comm);
bool scatter(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
             std::int64_t receive_count, Handle receive_type, int root, Handle comm);
bool scatterv(Call& call, const void* send, CountArray counts, CountArray displs, Handle send_type, void* receive,
              std::int64_t receive_count, Handle receive_type, int root, Handle comm);
bool allgather(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
               std::int64_t receive_count, Handle receive_type, Handle comm);
bool allgatherv(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
                CountArray counts, CountArray displs, Handle receive_type, Handle comm);

bool alltoall(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
              std::int64_t receive_count, Handle receive_type, Handle comm);
bool alltoallv(Call& call, const void* send, CountArray send_counts, CountArray send_displs, Handle send_type,
               void* receive, CountArray receive_counts, CountArray receive_displs, Handle receive_type, Handle comm);
// The arrays of types hold the host's handles.
bool alltoallw(Call& call, const void* send, CountArray send_counts, CountArray send_displs, const void* send_types,
               void* receive, CountArray receive_counts, CountArray receive_displs, const void* receive_types,
               Handle comm);
bool neighbor_allgather(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
                        std::int64_t receive_count, Handle receive_type, Handle comm);
bool neighbor_allgatherv(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
                         CountArray counts, CountArray displs, Handle receive_type, Handle comm);
bool neighbor_alltoall(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
                       std::int64_t receive_count, Handle receive_type, Handle comm);
bool neighbor_alltoallv(Call& call, const void* send, CountArray send_counts, CountArray send_displs, Handle send_type,
                        void* receive, CountArray receive_counts, CountArray receive_displs, Handle receive_type,
                        Handle comm);
// Displacements are MPI_Aint in both count families.
bool neighbor_alltoallw(Call& call, const void* send, CountArray send_counts, const void* send_displs,
                        const void* send_types, void* receive, CountArray receive_counts, const void* receive_displs,
                        const void* receive_types, Handle comm);
bool reduce(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, int root,
            Handle comm);
bool allreduce(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm);
bool reduce_scatter(Call& call, const void* send, void* receive, CountArray counts, Handle type, Handle op,
                    Handle comm);
bool reduce_scatter_block(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op,
                          Handle comm);
bool scan(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm);
bool exscan(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, Handle comm);

// Called after the host's function: counts the call, or compares results for STRETTO_CHECK=3.
// Returns what the program gets.
int host_done(Call& call, int code);

}  // namespace stretto::mpi
