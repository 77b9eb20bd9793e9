// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/typed_data.hpp"

#include <cstdlib>

namespace stretto::mpi {
namespace {

std::int64_t entry(const void* array, bool wide, int block) {
  return wide ? static_cast<const std::int64_t*>(array)[block] : static_cast<const int*>(array)[block];
}

}  // namespace

TypedData::~TypedData() {
  for (int r = 0; r < count_ && held_; ++r) {
    const Layout* const layout =
        staged_ != nullptr && staged_[r].packed != nullptr ? staged_[r].origin.layout : layouts_[r];
    if (layout != &kNoBytes) layout_release(layout);
  }
  if (layouts_ != few_layouts_) std::free(layouts_);
  let_go();
  if (arrays_ == nullptr && staged_ == nullptr) [[likely]]
    return;
  std::free(staged_);
  std::free(arrays_);
}

void TypedData::let_go() {
  for (int r = 0; r < count_ && types_ != nullptr; ++r) held_release(types_[r]);
  std::free(types_);
  types_ = nullptr;
}

// A block without data may have any type.
bool TypedData::acquire(Arguments& arguments, const Blocks& blocks, const MPI_Datatype* types) {
  const std::size_t length = static_cast<std::size_t>(count_) * sizeof(Layout*);
  layouts_ = count_ <= kFewBlocks ? few_layouts_ : static_cast<const Layout**>(std::malloc(length));
  if (layouts_ == nullptr) {
    arguments.failed(MPI_ERR_NO_MEM, "no memory");
    return false;
  }
  for (int r = 0; r < count_; ++r) {
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

// The types of blocks with data, which the program may free.
bool TypedData::hold_types(const MPI_Datatype* types) {
  types_ = static_cast<Handle*>(std::calloc(static_cast<std::size_t>(count_), sizeof(Handle)));
  if (types_ == nullptr) return false;
  for (int r = 0; r < count_; ++r) {
    if (layouts_[r] == &kNoBytes) continue;
    types_[r] = (Handle)types[r];  // NOLINT: an int or a pointer
    held_add(types_[r]);
  }
  return true;
}

// Copies the arrays of counts and displacements: to one width, or so that stage_some() can change
// displacements.
bool TypedData::copy_arrays(Blocks& blocks, const TypedBlocks& given) {
  const auto count = static_cast<std::size_t>(count_);
  arrays_ = static_cast<std::int64_t*>(std::malloc(2 * count * sizeof(std::int64_t)));
  if (arrays_ == nullptr) return false;
  for (int r = 0; r < count_; ++r) {
    arrays_[r] = entry(given.counts.data, given.counts.wide, r);
    arrays_[count_ + r] = entry(given.displs.data, given.displs.wide, r);
  }
  blocks.counts = arrays_;
  blocks.displs = arrays_ + count_;
  blocks.wide = true;
  return true;
}

int TypedData::stage_some(Blocks& blocks, const MPI_Datatype* types, const State& state, Staged::Direction direction) {
  for (int r = 0; r < count_; ++r) {
    Region region = blocks.at(r);
    if (region.bytes() == 0 || !must_stage(*layouts_[r], region.base)) [[likely]]
      continue;
    const int code = stage(staged_[r], region, types[r], state, direction);
    if (code != MPI_SUCCESS) return code;
    layouts_[r] = region.layout;
    arrays_[count_ + r] = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region.base) -
                                                    reinterpret_cast<std::uintptr_t>(blocks.base));
  }
  return MPI_SUCCESS;
}

Blocks TypedData::blocks(Arguments& arguments, const State& state, int count, const void* buffer,
                         const TypedBlocks& given, Staged::Direction direction) {
  const Blocks nothing{nullptr, &kNoBytes};
  if (count == 0) return nothing;
  if (given.counts.data == nullptr || given.displs.data == nullptr || given.types == nullptr) {
    arguments.wrong(MPI_ERR_ARG, "null array of counts, displacements or types");
    return nothing;
  }
  if (buffer == MPI_IN_PLACE) {
    arguments.wrong(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer");
    return nothing;
  }
  count_ = count;
  const auto* const handles = static_cast<const MPI_Datatype*>(given.types);
  Blocks blocks{static_cast<char*>(const_cast<void*>(buffer)),
                &kNoBytes,
                0,
                given.counts.data,
                given.displs.data,
                given.counts.wide,
                nullptr};
  const bool as_given = given.counts.wide == given.displs.wide && !keeps_;
  if (!as_given && !copy_arrays(blocks, given)) {
    arguments.failed(MPI_ERR_NO_MEM, "no memory");
    return nothing;
  }
  if (!acquire(arguments, blocks, handles)) return nothing;
  if (keeps_ && !hold_types(handles)) {
    arguments.failed(MPI_ERR_NO_MEM, "no memory");
    return nothing;
  }
  blocks.layouts = layouts_;
  if (!foreign_) [[likely]]
    return blocks;
  staged_ = static_cast<Staged*>(std::calloc(static_cast<std::size_t>(count), sizeof(Staged)));
  const bool able = staged_ != nullptr && (arrays_ != nullptr || copy_arrays(blocks, given));
  for (int r = 0; r < count && able; ++r) new (&staged_[r]) Staged;
  const int code = able ? stage_some(blocks, handles, state, direction) : MPI_ERR_NO_MEM;
  if (code == MPI_SUCCESS) return blocks;
  arguments.failed(code, "the data could not be packed");
  return nothing;
}

int TypedData::finish() {
  int code = MPI_SUCCESS;
  for (int r = 0; r < count_ && staged_ != nullptr; ++r) {
    if (staged_[r].packed == nullptr) continue;
    layouts_[r] = staged_[r].origin.layout;
    const int now = unstage(staged_[r]);
    if (code == MPI_SUCCESS) code = now;
  }
  return code;
}

}  // namespace stretto::mpi
