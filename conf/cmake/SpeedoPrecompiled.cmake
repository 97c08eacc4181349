# Headers of libraries that most sources include, parsed once for each set of flags. A unit saves 1 to
# 2 s of 5 to 25; a set costs 10 s, and 15 units or more share each (tests/bench/RESULTS.md). Headers
# of ours are not among them: whoever changes one would wait for all. Sources include what they use
# all the same: SPEEDO_UNITY=OFF, as in the preset debug, compiles each without.
set(is_default OFF)
if(SPEEDO_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT SPEEDO_SANITIZE)
  set(is_default ON)
endif()
option(SPEEDO_PRECOMPILE "Parse the headers of libraries once, not once a unit" ${is_default})

set(SPEEDO_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstring>
  <deque> <filesystem> <fstream> <functional> <future> <limits> <map> <memory> <mutex> <numeric>
  <optional> <set> <span> <sstream> <string> <string_view> <system_error> <thread> <utility>
  <variant> <vector> <fmt/format.h> <caffe.pb.h>)

# speedo_precompiled(NAME HEADERS ... LINK ... OPTIONS ...): a set of them beside those above, compiled
# with these options and what the folder's targets are compiled with.
function(speedo_precompiled name)
  if(NOT SPEEDO_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK;OPTIONS" ${ARGN})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "" @ONLY)
  add_library(${name} OBJECT ${source})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${name} PRIVATE speedo_warnings speedo_proto fmt::fmt ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE ${SPEEDO_PRECOMPILED_HEADERS} ${ARG_HEADERS})
endfunction()

# speedo_precompile(SET TARGET...): the targets' sources are compiled with a set. GCC takes it only
# where the flags are the same, and an unused one is an error.
function(speedo_precompile set)
  if(SPEEDO_PRECOMPILE)
    foreach(target ${ARGN})
      target_precompile_headers(${target} REUSE_FROM ${set})
    endforeach()
  endif()
endfunction()
