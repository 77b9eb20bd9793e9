# SPDX-License-Identifier: BSD-3-Clause
# Which MPI ABIs to build for. STRETTO_<ABI>_INCLUDE names the directory of mpi.h; unset, Debian's places are tried.
# The libraries link to no MPI: the host's functions are found at run time.
set(STRETTO_ABIS "")
foreach(abi openmpi mpich)
  string(TOUPPER ${abi} _upper)
  find_path(STRETTO_${_upper}_INCLUDE mpi.h NO_DEFAULT_PATH
    PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/${abi}/include /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/${abi})
  if(STRETTO_${_upper}_INCLUDE)
    list(APPEND STRETTO_ABIS ${abi})
  endif()
endforeach()
message(STATUS "MPI ABIs: ${STRETTO_ABIS}")

# What one ABI's libraries are made of, beside the core.
function(stretto_mpi_objects abi)
  string(TOUPPER ${abi} _upper)
  set(_objects stretto_mpi_${abi})
  add_library(${_objects} OBJECT ${STRETTO_MPI_SOURCES} src/mpi/vendor/launcher.cpp src/mpi/vendor/${abi}.cpp)
  target_include_directories(${_objects} PRIVATE src)
  target_include_directories(${_objects} SYSTEM PRIVATE ${STRETTO_${_upper}_INCLUDE})
  target_compile_definitions(${_objects} PRIVATE STRETTO_ABI_${_upper}=1 STRETTO_VERSION="${PROJECT_VERSION}"
    OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
  stretto_core_flags(${_objects})
  # Thread-local data without a call: the library is there from the start (preloaded), so the static block has room.
  target_compile_options(${_objects} PRIVATE -ftls-model=initial-exec)
endfunction()

function(stretto_preload target abi core)
  set(_map ${CMAKE_SOURCE_DIR}/src/mpi/exports.${abi}.map)
  add_library(${target} SHARED $<TARGET_OBJECTS:stretto_mpi_${abi}>)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${_map} LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE ${core})
  stretto_hide(${target} ${_map})
endfunction()
