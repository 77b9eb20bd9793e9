// SPDX-License-Identifier: BSD-3-Clause
// stretto.toml: the flat part of TOML 1.0, `key = value` lines, so that every editor and every TOML library reads the
// file too. Values are strings in one line ("..." with escapes, '...' without), decimal integers, true and false.
// Comments and blank lines are free. Tables, arrays, dotted or quoted keys, floats, dates and multi-line strings are
// errors that say so. Why not a library: docs/adr/0010-settings-parser.md.
#pragma once
#include <cstddef>

namespace stretto {

struct FileEntry {
  const char* key;    // terminated
  const char* value;  // decoded and terminated: a string's text, an integer's digits, true, false
  unsigned line;
  unsigned column;  // of the key
};

// Messages begin with FILE:LINE:COLUMN: and `what`, as those of compilers.
struct FileError {
  unsigned line = 0;    // from 1
  unsigned column = 0;  // from 1, in bytes
  const char* what = nullptr;
};

// Calls `each` for every entry until `each` returns a text (what is wrong with the entry) or the text is not
// understood. False with `error` set in both cases. Keys are up to 63, values up to 1023 bytes long. No heap.
bool parse_settings(const char* text, std::size_t bytes, const char* (*each)(void* context, const FileEntry& entry),
                    void* context, FileError* error);

}  // namespace stretto
