# What an installed Straightway is: headers, both libraries, the CMake package and the pkg-config
# file (component development), and the static library (component static). The command line and the
# Python package install themselves.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/straightway)

install(DIRECTORY include/straightway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
if(SKBUILD)  # a wheel has no symbolic links, so the linker is told by a script
  install(TARGETS straightway_shared EXPORT straightway
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development NAMELINK_SKIP)
  file(WRITE ${CMAKE_BINARY_DIR}/namelink/libstraightway.so "INPUT(libstraightway.so.0)\n")
  install(FILES ${CMAKE_BINARY_DIR}/namelink/libstraightway.so
    DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
else()
  install(TARGETS straightway_shared EXPORT straightway
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
install(EXPORT straightway NAMESPACE straightway:: FILE straightway-targets.cmake
  DESTINATION ${package_dir} COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/src/libstraightway.a DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT static)

write_basic_package_version_file(${CMAKE_BINARY_DIR}/straightway-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/straightway-config.cmake ${CMAKE_BINARY_DIR}/straightway-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

# Found from where the file lies, so that the tree can be moved (a wheel is unpacked anywhere).
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(cmake/straightway.pc.in ${CMAKE_BINARY_DIR}/straightway.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/straightway.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# On no default search path: a program gets it only when somebody says so.
install(TARGETS straightway_cufile straightway_audit
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/straightway/cufile COMPONENT tools)
