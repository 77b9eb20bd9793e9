// SPDX-License-Identifier: BSD-3-Clause
// PMIx values in a table: packs them, and makes them again for a caller to own.
#pragma once
#include <pmix.h>

#include "kv/table.hpp"

namespace stretto::pmix {

// The bytes of a value: of its text, or of its union. False: it has a type that is not kept
// (pointers to further pointers).
bool value_pack(const pmix_value_t& value, kv::Value* packed);
// A value as PMIx_Get hands it out, for PMIX_VALUE_RELEASE. null: the bytes do not make one, or
// there is no memory.
pmix_value_t* value_make(std::uint16_t type, const void* data, std::size_t bytes);
void value_release(pmix_value_t* value);

}  // namespace stretto::pmix
