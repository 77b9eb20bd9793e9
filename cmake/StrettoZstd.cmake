# SPDX-License-Identifier: BSD-3-Clause
# zstd for packed recordings, if this machine has its static library. Without it they are stored as they are.
stretto_find_header(STRETTO_ZSTD_INCLUDE zstd.h /usr/include /usr/local/include)
find_library(STRETTO_ZSTD_LIBRARY NAMES libzstd.a)

function(stretto_zstd target)
  if(STRETTO_ZSTD_INCLUDE AND STRETTO_ZSTD_LIBRARY)
    target_include_directories(${target} PRIVATE ${STRETTO_ZSTD_INCLUDE})
    target_link_libraries(${target} PRIVATE ${STRETTO_ZSTD_LIBRARY})
    target_compile_definitions(${target} PRIVATE STRETTO_ZSTD=1)
  endif()
endfunction()
