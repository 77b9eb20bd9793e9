# SPDX-License-Identifier: BSD-3-Clause
# Libraries of the tool that reads recordings. Without zstd it packs nothing. Without OTF2 it writes none.
stretto_find_header(STRETTO_ZSTD_INCLUDE zstd.h /usr/include /usr/local/include)
find_library(STRETTO_ZSTD_LIBRARY NAMES libzstd.a)

stretto_find_header(STRETTO_OTF2_INCLUDE otf2/otf2.h /usr/include /usr/local/include)
find_library(STRETTO_OTF2_LIBRARY NAMES libotf2.a)

function(stretto_recordings target)
  if(STRETTO_ZSTD_INCLUDE AND STRETTO_ZSTD_LIBRARY)
    target_include_directories(${target} PRIVATE ${STRETTO_ZSTD_INCLUDE})
    target_link_libraries(${target} PRIVATE ${STRETTO_ZSTD_LIBRARY})
    target_compile_definitions(${target} PRIVATE STRETTO_ZSTD=1)
  endif()
  if(STRETTO_OTF2_INCLUDE AND STRETTO_OTF2_LIBRARY)
    # Its interface has changed with version 3.
    file(STRINGS ${STRETTO_OTF2_INCLUDE}/otf2/OTF2_GlobalDefWriter.h _third REGEX "creatingLocationGroup")
    if(_third)
      target_include_directories(${target} PRIVATE ${STRETTO_OTF2_INCLUDE})
      target_link_libraries(${target} PRIVATE ${STRETTO_OTF2_LIBRARY})
      target_compile_definitions(${target} PRIVATE STRETTO_OTF2=1)
    endif()
  endif()
endfunction()
