# oneDNN by its header and library. Debian's own CMake files ask for OpenCL's development package,
# which nothing here needs. Only builds on OpenMP are taken: the others have threads of their own.
find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(ONEDNN_LIBRARY dnnl)
if(ONEDNN_INCLUDE_DIR)
  file(STRINGS ${ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines
    REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." ONEDNN_VERSION)
  file(STRINGS ${ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h ONEDNN_OPENMP
    REGEX "define DNNL_CPU_RUNTIME DNNL_RUNTIME_OMP")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN
  REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_INCLUDE_DIR ONEDNN_OPENMP
  VERSION_VAR ONEDNN_VERSION)
if(OneDNN_FOUND AND NOT TARGET OneDNN::dnnl)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  add_library(OneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDNN::dnnl PROPERTIES
    IMPORTED_LOCATION ${ONEDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES OpenMP::OpenMP_CXX)
endif()
