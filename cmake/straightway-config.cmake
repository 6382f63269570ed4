# find_package(straightway) gives straightway::straightway, the shared library, and, where it is
# installed, straightway::static. Both need the standard library alone.
include(${CMAKE_CURRENT_LIST_DIR}/straightway-targets.cmake)

find_library(straightway_archive libstraightway.a NO_CACHE NO_DEFAULT_PATH
  PATHS ${CMAKE_CURRENT_LIST_DIR}/../..)
if(straightway_archive AND NOT TARGET straightway::static)
  find_package(Threads QUIET REQUIRED)
  get_target_property(straightway_includes straightway::straightway INTERFACE_INCLUDE_DIRECTORIES)
  add_library(straightway::static STATIC IMPORTED)
  set_target_properties(straightway::static PROPERTIES
    IMPORTED_LOCATION ${straightway_archive}
    INTERFACE_INCLUDE_DIRECTORIES ${straightway_includes}
    INTERFACE_COMPILE_FEATURES cxx_std_20)
  target_link_libraries(straightway::static INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
endif()
