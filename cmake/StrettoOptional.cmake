# SPDX-License-Identifier: BSD-3-Clause
# Headers of this machine that optional parts need. Packages bring them and take them away. What was looked at is
# written down, so that python/stretto/native/configuring.py configures again when an answer has changed.
set(STRETTO_LOOKED_AT "")

# stretto_find_header(VARIABLE HEADER PLACE...): the first of the places with the header, into the cache.
macro(stretto_find_header variable header)
  if(IS_ABSOLUTE "${${variable}}" AND NOT EXISTS "${${variable}}/${header}")
    unset(${variable} CACHE)
  endif()
  find_path(${variable} ${header} NO_DEFAULT_PATH PATHS ${ARGN})
  foreach(_place IN ITEMS ${ARGN})
    list(APPEND STRETTO_LOOKED_AT "${_place}/${header}")
  endforeach()
endmacro()

# Writes a line for each place: 1 or 0, and its name.
function(stretto_write_looked_at)
  set(_lines "")
  foreach(_file IN LISTS STRETTO_LOOKED_AT)
    if(EXISTS "${_file}")
      string(APPEND _lines "1 ${_file}\n")
    else()
      string(APPEND _lines "0 ${_file}\n")
    endif()
  endforeach()
  file(WRITE "${CMAKE_BINARY_DIR}/stretto-looked-at.txt" "${_lines}")
endfunction()
