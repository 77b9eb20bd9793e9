// SPDX-License-Identifier: BSD-3-Clause
// Alltoall, Alltoallv, Alltoallw. The arguments of a rank say what it sends and where data go.
// Whether Stretto serves the call depends on none of these arguments.
#include <cstdlib>

#include "mpi/overlap.hpp"
#include "mpi/serve.hpp"

namespace stretto::mpi {
namespace {

template <class Route>
bool serve_alltoall(Route route, Call& call, Arguments& arguments, const void* send, const Extents& give,
                    Handle send_type, const void* receive, const Extents& take, Handle receive_type) {
  const State& state = *call.state;
  const bool in_place = send == MPI_IN_PLACE;
  auto&& source = data_of(route, 0);
  auto&& target = data_of(route, 1);
  target.watch(call);
  const Extents& taken = kept(route, arguments, take);
  const Extents& given = kept(route, arguments, give);
  const Blocks to = target.blocks(arguments, state, receive, taken, receive_type, Staged::write);
  Blocks from{nullptr, &kNoBytes};
  if (!in_place) from = source.blocks(arguments, state, send, given, send_type, Staged::read);
  return serve(route, call, arguments, &source, &target, [&](auto& comm, bool good) {
    const std::uint64_t bytes = take.counts == nullptr ? to.at(0).bytes() * static_cast<std::uint64_t>(state.size) : 0;
    if (Overlap* const overlap = overlap_of(route, call, bytes))
      return overlap->alltoall(from, to, in_place, overlap->may_defer(target.is_staged()));
    return engine::alltoall(comm, call.collective(), from, to, in_place, good);
  });
}

// ---- Alltoallw: a type for each block ----

std::int64_t entry(const void* array, bool wide, int rank) {
  return wide ? static_cast<const std::int64_t*>(array)[rank] : static_cast<const int*>(array)[rank];
}

// One side of an Alltoallw: the layouts, held while the call lasts, and the staged blocks.
class TypedData {
 public:
  TypedData() {}  // NOLINT: few_layouts_ is filled when it is used
  ~TypedData();
  TypedData(const TypedData&) = delete;
  TypedData& operator=(const TypedData&) = delete;

  Blocks blocks(Arguments& arguments, const State& state, const void* buffer, const Array& counts, const Array& displs,
                const void* types, Staged::Direction direction);
  // For STRETTO_CHECK: says that the call may change these blocks. Call it after blocks().
  void watch(Call& call, const Blocks& blocks, const void* types) const {
    if (call.state->check != 3) [[likely]]
      return;
    check_begin(call, blocks, blocks.layouts != nullptr ? ranks_ : 0, static_cast<const MPI_Datatype*>(types),
                staged_ != nullptr);
  }
  [[nodiscard]] int finish();

 private:
  bool acquire(Arguments& arguments, const Blocks& blocks, const MPI_Datatype* types);
  int stage_some(Blocks& blocks, const MPI_Datatype* types, MPI_Comm comm, Staged::Direction direction);
  bool copy_arrays(Blocks& blocks);

  static constexpr int kFewRanks = 16;

  int ranks_ = 0;
  bool held_ = false;     // some layout must be released
  bool foreign_ = false;  // some block must be staged
  const Layout** layouts_ = nullptr;
  const Layout* few_layouts_[kFewRanks];  // for up to kFewRanks ranks: a short call uses no heap
  Staged* staged_ = nullptr;              // one for each block, most of them empty
  std::int64_t* arrays_ = nullptr;        // our copies of counts and displacements, if some blocks are staged
};

TypedData::~TypedData() {
  for (int r = 0; r < ranks_ && held_; r++) {
    const Layout* const layout =
        staged_ != nullptr && staged_[r].packed != nullptr ? staged_[r].origin.layout : layouts_[r];
    if (layout != &kNoBytes) layout_release(layout);
  }
  if (layouts_ != few_layouts_) std::free(layouts_);
  if (!foreign_) [[likely]]
    return;
  std::free(staged_);
  std::free(arrays_);
}

// A block without data may have any type.
bool TypedData::acquire(Arguments& arguments, const Blocks& blocks, const MPI_Datatype* types) {
  const std::size_t length = static_cast<std::size_t>(ranks_) * sizeof(Layout*);
  layouts_ = ranks_ <= kFewRanks ? few_layouts_ : static_cast<const Layout**>(std::malloc(length));
  if (layouts_ == nullptr) {
    arguments.failed(MPI_ERR_NO_MEM, "no memory");
    return false;
  }
  for (int r = 0; r < ranks_; r++) {
    layouts_[r] = &kNoBytes;
    const std::int64_t count = entry(blocks.counts, blocks.wide, r);
    if (count < 0) arguments.wrong(MPI_ERR_COUNT, "negative count");
    if (count <= 0) continue;
    const Layout* layout = plain_layout(types[r]);
    if (layout == nullptr) {
      layout = layout_acquire(types[r]);
      held_ = true;
    }
    if (layout == nullptr) {
      arguments.wrong(MPI_ERR_TYPE, "invalid datatype, or one that is not committed");
      continue;
    }
    layouts_[r] = layout;
    const std::int64_t displacement = entry(blocks.displs, blocks.wide, r);
    if (blocks.base == nullptr && starts_in_page_zero(*layout, displacement))
      arguments.wrong(MPI_ERR_BUFFER, "null buffer");
    foreign_ = foreign_ || must_stage(*layout, address_at(blocks.base, displacement));
  }
  return arguments.good();
}

// Copies the arrays of counts and displacements, so that stage_some() can change displacements.
bool TypedData::copy_arrays(Blocks& blocks) {
  const auto ranks = static_cast<std::size_t>(ranks_);
  staged_ = static_cast<Staged*>(std::calloc(ranks, sizeof(Staged)));
  arrays_ = static_cast<std::int64_t*>(std::malloc(2 * ranks * sizeof(std::int64_t)));
  if (staged_ == nullptr || arrays_ == nullptr) return false;
  for (int r = 0; r < ranks_; r++) {
    arrays_[r] = entry(blocks.counts, blocks.wide, r);
    arrays_[ranks_ + r] = entry(blocks.displs, blocks.wide, r);
    new (&staged_[r]) Staged;
  }
  blocks.counts = arrays_;
  blocks.displs = arrays_ + ranks_;
  blocks.wide = true;
  return true;
}

int TypedData::stage_some(Blocks& blocks, const MPI_Datatype* types, MPI_Comm comm, Staged::Direction direction) {
  for (int r = 0; r < ranks_; r++) {
    Region region = blocks.at(r);
    if (region.bytes() == 0 || !must_stage(*layouts_[r], region.base)) [[likely]]
      continue;
    if (staged_ == nullptr && !copy_arrays(blocks)) return MPI_ERR_NO_MEM;
    const int code = stage(staged_[r], region, types[r], comm, direction);
    if (code != MPI_SUCCESS) return code;
    layouts_[r] = region.layout;
    arrays_[ranks_ + r] = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region.base) -
                                                    reinterpret_cast<std::uintptr_t>(blocks.base));
  }
  return MPI_SUCCESS;
}

Blocks TypedData::blocks(Arguments& arguments, const State& state, const void* buffer, const Array& counts,
                         const Array& displs, const void* types, Staged::Direction direction) {
  const Blocks nothing{nullptr, &kNoBytes};
  if (counts.data == nullptr || displs.data == nullptr || types == nullptr) {
    arguments.wrong(MPI_ERR_ARG, "null array of counts, displacements or types");
    return nothing;
  }
  if (buffer == MPI_IN_PLACE) {
    arguments.wrong(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer");
    return nothing;
  }
  ranks_ = state.size;
  const auto* const handles = static_cast<const MPI_Datatype*>(types);
  Blocks blocks{
      static_cast<char*>(const_cast<void*>(buffer)), &kNoBytes, 0, counts.data, displs.data, counts.wide, nullptr};
  if (!acquire(arguments, blocks, handles)) return nothing;
  blocks.layouts = layouts_;
  const int code = foreign_ ? stage_some(blocks, handles, state.handle, direction) : MPI_SUCCESS;
  if (code == MPI_SUCCESS) [[likely]]
    return blocks;
  arguments.failed(code, "the data could not be packed");
  return nothing;
}

int TypedData::finish() {
  int code = MPI_SUCCESS;
  for (int r = 0; r < ranks_ && staged_ != nullptr; r++) {
    if (staged_[r].packed == nullptr) continue;
    layouts_[r] = staged_[r].origin.layout;
    const int now = unstage(staged_[r]);
    if (code == MPI_SUCCESS) code = now;
  }
  return code;
}

}  // namespace

bool alltoall(Call& call, const void* send, std::int64_t send_count, Handle send_type, void* receive,
              std::int64_t receive_count, Handle receive_type, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(-1, receive_count, receive_type) : call_sized(-1, send_count, send_type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const Extents give = send == MPI_IN_PLACE ? Extents{} : regular(arguments, send_count, state);
    const Extents take = regular(arguments, receive_count, state);
    return serve_alltoall(route, call, arguments, send, give, send_type, receive, take, receive_type);
  });
}

bool alltoallv(Call& call, const void* send, Array send_counts, Array send_displs, Handle send_type, void* receive,
               Array receive_counts, Array receive_displs, Handle receive_type, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(CallSize::Counts::mean, receive_counts, receive_type)
                       : call_sized(CallSize::Counts::mean, send_counts, send_type);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const Extents give = send == MPI_IN_PLACE ? Extents{} : irregular(arguments, send_counts, send_displs, state);
    const Extents take = irregular(arguments, receive_counts, receive_displs, state);
    return serve_alltoall(route, call, arguments, send, give, send_type, receive, take, receive_type);
  });
}

bool alltoallw(Call& call, const void* send, Array send_counts, Array send_displs, const void* send_types,
               void* receive, Array receive_counts, Array receive_displs, const void* receive_types, Handle comm) {
  send == MPI_IN_PLACE ? call_sized(CallSize::Counts::mean, receive_counts, 0, -1, receive_types)
                       : call_sized(CallSize::Counts::mean, send_counts, 0, -1, send_types);
  return routed(call, comm, [&](auto route) {
    const State& state = *call.state;
    Arguments arguments;
    const bool in_place = send == MPI_IN_PLACE;
    TypedData source, target;
    const Blocks to =
        target.blocks(arguments, state, receive, receive_counts, receive_displs, receive_types, Staged::write);
    target.watch(call, to, receive_types);
    Blocks from{nullptr, &kNoBytes};
    if (!in_place) from = source.blocks(arguments, state, send, send_counts, send_displs, send_types, Staged::read);
    const auto finish = [&] {
      const int code = source.finish();
      const int other = target.finish();
      return code != MPI_SUCCESS ? code : other;
    };
    return serve(route, call, arguments, finish, [&](auto& c, bool good) {
      return engine::alltoall(c, Collective::alltoallw, from, to, in_place, good);
    });
  });
}

}  // namespace stretto::mpi
