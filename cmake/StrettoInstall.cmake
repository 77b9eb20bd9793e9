# SPDX-License-Identifier: BSD-3-Clause
# `cmake --install`: libraries and programs, stretto/kv.h, and what finds it. `stretto install` installs the command as
# well, in the same places: python/stretto/packaging/prefix.py.
include(GNUInstallDirs)
set(_native ${CMAKE_INSTALL_LIBDIR}/stretto/native)
set(_preloads ${STRETTO_ABIS})
list(TRANSFORM _preloads PREPEND stretto-)
install(TARGETS ${_preloads} LIBRARY DESTINATION ${_native})
if(TARGET stretto-pmix)
  install(TARGETS stretto-pmix LIBRARY DESTINATION ${_native})
endif()
if(TARGET stretto-spank)
  install(TARGETS stretto-spank LIBRARY DESTINATION ${_native})
endif()
install(TARGETS stretto-kv LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS stretto-core-to-core stretto-keeper stretto-kv-bench stretto-model stretto-probe stretto-top
  stretto-topology stretto-verify RUNTIME DESTINATION ${_native})
install(FILES include/stretto/kv.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stretto)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What the templates name: they know their own place, not the prefix.
set(VERSION ${PROJECT_VERSION})
set(LIBDIR ${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH UP /${CMAKE_INSTALL_LIBDIR} /)
string(REGEX REPLACE "/$" "" UP "${UP}")
foreach(_made IN ITEMS StrettoConfig.cmake StrettoConfigVersion.cmake stretto-kv.pc)
  configure_file(cmake/install/${_made}.in ${CMAKE_BINARY_DIR}/install/${_made} @ONLY)
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/install/StrettoConfig.cmake ${CMAKE_BINARY_DIR}/install/StrettoConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Stretto)
install(FILES ${CMAKE_BINARY_DIR}/install/stretto-kv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
