// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/values.hpp"

#include <cstdlib>
#include <cstring>

namespace stretto::pmix {
namespace {

enum class Shape : std::uint8_t { none, scalar, string, object, proc };

Shape shape_of(pmix_data_type_t type) {
  switch (type) {
    case PMIX_BOOL:
    case PMIX_BYTE:
    case PMIX_SIZE:
    case PMIX_PID:
    case PMIX_INT:
    case PMIX_INT8:
    case PMIX_INT16:
    case PMIX_INT32:
    case PMIX_INT64:
    case PMIX_UINT:
    case PMIX_UINT8:
    case PMIX_UINT16:
    case PMIX_UINT32:
    case PMIX_UINT64:
    case PMIX_FLOAT:
    case PMIX_DOUBLE:
    case PMIX_TIMEVAL:
    case PMIX_TIME:
    case PMIX_STATUS:
    case PMIX_PROC_RANK:
    case PMIX_PERSIST:
    case PMIX_SCOPE:
    case PMIX_DATA_RANGE:
    case PMIX_PROC_STATE: return Shape::scalar;
    case PMIX_STRING: return Shape::string;
    case PMIX_BYTE_OBJECT:
    case PMIX_COMPRESSED_STRING:
    case PMIX_COMPRESSED_BYTE_OBJECT: return Shape::object;
    case PMIX_PROC: return Shape::proc;
    default: return Shape::none;
  }
}

void* copy_of(const void* data, std::size_t bytes) {
  void* const copy = std::malloc(bytes != 0 ? bytes : 1);
  if (copy && bytes != 0) std::memcpy(copy, data, bytes);
  return copy;
}

constexpr std::size_t kScalarBytes = sizeof(timeval);  // timeval is the largest
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

bool value_pack(const pmix_value_t& value, kv::Value* packed) {
  packed->type = value.type;
  std::size_t bytes = 0;
  switch (shape_of(value.type)) {
    case Shape::scalar: packed->data = &value.data, bytes = kScalarBytes; break;
    case Shape::string:
      if (!value.data.string) return false;
      packed->data = value.data.string, bytes = std::strlen(value.data.string) + 1;
      break;
    case Shape::object:
      if (!value.data.bo.bytes && value.data.bo.size != 0) return false;
      packed->data = value.data.bo.bytes, bytes = value.data.bo.size;
      break;
    case Shape::proc:
      if (!value.data.proc) return false;
      packed->data = value.data.proc, bytes = sizeof(pmix_proc_t);
      break;
    case Shape::none: return false;
  }
  packed->bytes = static_cast<std::uint32_t>(bytes);
  return bytes < kMostBytes;
}

pmix_value_t* value_make(std::uint16_t type, const void* data, std::size_t bytes) {
  auto* const value = static_cast<pmix_value_t*>(std::calloc(1, sizeof(pmix_value_t)));
  if (!value) return nullptr;
  value->type = type;
  bool good = false;
  switch (shape_of(type)) {
    case Shape::scalar:
      good = bytes == kScalarBytes;
      if (good) std::memcpy(&value->data, data, bytes);
      break;
    case Shape::string:
      good = bytes != 0 && static_cast<const char*>(data)[bytes - 1] == 0 &&
             (value->data.string = static_cast<char*>(copy_of(data, bytes))) != nullptr;
      break;
    case Shape::object:
      good = bytes == 0 || (value->data.bo.bytes = static_cast<char*>(copy_of(data, bytes))) != nullptr;
      value->data.bo.size = bytes;
      break;
    case Shape::proc:
      good = bytes == sizeof(pmix_proc_t) &&
             (value->data.proc = static_cast<pmix_proc_t*>(copy_of(data, bytes))) != nullptr;
      break;
    case Shape::none: break;
  }
  if (good) return value;
  std::free(value);
  return nullptr;
}

void value_release(pmix_value_t* value) {
  if (!value) return;
  if (shape_of(value->type) == Shape::string) std::free(value->data.string);
  if (shape_of(value->type) == Shape::object) std::free(value->data.bo.bytes);
  if (shape_of(value->type) == Shape::proc) std::free(value->data.proc);
  std::free(value);
}

}  // namespace stretto::pmix
