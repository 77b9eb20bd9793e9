// SPDX-License-Identifier: BSD-3-Clause
// Reads stretto.toml: the flat part of TOML 1.0, lines of `key = value`. Every editor and every
// TOML library can read the file too. A value is a string in one line ("..." with escapes, or '...'
// without), a decimal integer, true or false. Comments and blank lines may stand anywhere. Tables,
// arrays, dotted or quoted keys, floats, dates and multi-line strings are errors that say so.
// docs/adr/0010-settings-parser.md says why Stretto uses no library.
#pragma once
#include <cstddef>

namespace stretto {

struct FileEntry {
  const char* key;    // terminated
  const char* value;  // decoded and terminated: a string's text, an integer's digits, true or false
  unsigned line;
  unsigned column;  // of the key
};

// Where and why reading stopped. Callers write FILE:LINE:COLUMN: and `what`, as compilers do.
struct FileError {
  unsigned line = 0;    // from 1
  unsigned column = 0;  // from 1, in bytes
  const char* what = nullptr;
};

// Calls `each` for every entry. Stops when `each` returns a text, which says what is wrong with the
// entry, or when the file has a syntax error. In both cases it returns false and sets `error`. Keys
// have at most 63 bytes, values at most 1023. It uses no heap.
bool parse_settings(const char* text, std::size_t bytes, const char* (*each)(void* context, const FileEntry& entry),
                    void* context, FileError* error);

}  // namespace stretto
