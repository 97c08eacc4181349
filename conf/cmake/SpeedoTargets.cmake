set(SPEEDO_OPTIMIZED
  "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-O2;-fvect-cost-model=dynamic>")

# speedo_library(NAME [INSTALL] [LIGHT | LOOPS] SOURCES ... PUBLIC ... PRIVATE ...): one room, one
# library. INSTALL: it implements contracts of include/speedo, for others' programs too: speedo_core is
# their speedo::core. LIGHT: it waits for people, files and other programs, and is compiled quickly
# rather than well, in two thirds of the time. LOOPS: its time is that of loops over values, of which
# the compiler makes all it can. Others have their loops vectorized as those, and the rest a tenth
# sooner.
function(speedo_library name)
  cmake_parse_arguments(ARG "INSTALL;LIGHT;LOOPS" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  speedo_harden(${name})
  target_link_libraries(${name}
    PUBLIC ${ARG_PUBLIC} PRIVATE $<BUILD_INTERFACE:speedo_warnings> ${ARG_PRIVATE})
  if(ARG_LIGHT)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    # Larger units than others' save a tenth, and less optimised they take no more memory.
    set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 60)
  elseif(NOT ARG_LOOPS)
    target_compile_options(${name} PRIVATE ${SPEEDO_OPTIMIZED})
  endif()
  if(ARG_INSTALL)
    speedo_install_library(${name})
  endif()
endfunction()

# speedo_install_library(NAME): the library, and its target in the package's configuration.
function(speedo_install_library name)
  string(REGEX REPLACE "^speedo_" "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  target_compile_features(${name} PUBLIC cxx_std_20)
  install(TARGETS ${name} EXPORT speedo COMPONENT development
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION include)
endfunction()

# speedo_program(NAME SOURCES ... LINK ... [FOLDER f]): an executable in bin/, installed there or in f.
function(speedo_program name)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${CMAKE_INSTALL_BINDIR})
  endif()
  add_executable(${name} ${ARG_SOURCES})
  speedo_harden(${name})
  target_link_libraries(${name} PRIVATE speedo_warnings ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name} COMPONENT programs RUNTIME DESTINATION ${ARG_FOLDER})
endfunction()

# speedo_ctest(NAME LABEL l... TIMEOUT s COMMAND ...): one test of ctest's, run in the project's
# folder; exit code 77 means skipped. It takes two of the five places that tests/run.sh gives ctest.
# WAITS: for one that waits most of its time. It takes one place and starts early, and no more than
# three of them run at a time, which leaves two places for one that computes.
function(speedo_ctest name)
  cmake_parse_arguments(ARG "WAITS" "TIMEOUT" "LABEL;COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES PROCESSORS 2
                       TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABEL}" SKIP_RETURN_CODE 77)
  if(ARG_WAITS)
    get_property(earlier GLOBAL PROPERTY speedo_waiting_tests)
    list(LENGTH earlier count)
    math(EXPR lock "${count} % 3")
    set_property(GLOBAL APPEND PROPERTY speedo_waiting_tests ${name})
    set_tests_properties(${name} PROPERTIES PROCESSORS 1 COST 100 RESOURCE_LOCK waiting_${lock})
  endif()
endfunction()

# speedo_kernel_tests(NAME LABEL l... TIMEOUT s COMMAND ...): the command under every choice of the
# CPU backend's kernels, and with the best of them on a device that does nothing before it is waited
# for; lesser ones without oneDNN only in long runs. It takes --cpu-isa WORD, --no-onednn and
# --deferred, and skips what this machine cannot run. Sanitizers see AVX2, and all kernels of ours.
function(speedo_kernel_tests name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABEL;COMMAND" ${ARGN})
  set(plain ${ARG_LABEL})
  list(REMOVE_ITEM plain sanitize)
  set(test TIMEOUT ${ARG_TIMEOUT} COMMAND ${ARG_COMMAND})
  speedo_ctest(${name}_avx512 LABEL ${plain} ${test} --cpu-isa avx512)
  speedo_ctest(${name}_avx2 LABEL ${ARG_LABEL} ${test} --cpu-isa avx2)
  speedo_ctest(${name}_portable LABEL ${plain} ${test} --cpu-isa portable)
  speedo_ctest(${name}_no_onednn LABEL ${ARG_LABEL} ${test} --no-onednn)
  speedo_ctest(${name}_deferred LABEL ${plain} ${test} --deferred)
  foreach(isa avx2 portable)
    speedo_ctest(${name}_${isa}_no_onednn LABEL long ${test} --no-onednn --cpu-isa ${isa})
  endforeach()
endfunction()

# speedo_test(NAME [KERNELS | DEFERRED | BY_FILE] [WAITS] [ASKS_LITTLE] LABEL l... TIMEOUT s SEEDS n...
#   SOURCES ... LINK ...):
# a Catch2 program that is one ctest test; with KERNELS one for every choice of kernels, with DEFERRED
# two, told by support/kernel_main.cpp; with BY_FILE one for the cases of each NAME_test.cpp of its
# folder; and one for each kept seed of its values (support/random_seed.hpp). WAITS: see above. A
# program that ASKS_LITTLE of the processor is not optimised. Those with the label "sanitize" are what
# the target sanitize_tests builds; a sanitizer makes them several times as slow, and sees a fresh seed
# only.
function(speedo_test name)
  cmake_parse_arguments(ARG "KERNELS;DEFERRED;BY_FILE;WAITS;ASKS_LITTLE" "TIMEOUT"
                        "LABEL;SEEDS;SOURCES;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(SPEEDO_SANITIZE)
    set(ARG_TIMEOUT 900)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if("sanitize" IN_LIST ARG_LABEL)
    add_dependencies(sanitize_tests ${name})
  endif()
  set(test LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COMMAND ${name})
  if(ARG_WAITS)
    list(PREPEND test WAITS)
  endif()
  if(ARG_KERNELS)
    set(main speedo_kernel_test_main)
    speedo_kernel_tests(${name} ${test})
  elseif(ARG_DEFERRED)
    set(main speedo_kernel_test_main)
    speedo_ctest(${name} ${test})
    speedo_ctest(${name}_deferred ${test} --deferred)
  elseif(ARG_BY_FILE)
    set(main speedo_test_main)
    list(FILTER ARG_SOURCES INCLUDE REGEX "^[a-z_]+_test\\.cpp$")
    foreach(source ${ARG_SOURCES})
      get_filename_component(file ${source} NAME_WE)
      string(REGEX REPLACE "_test$" "" cases ${file})
      speedo_ctest(${name}_${cases} ${test} --warn NoTests --filenames-as-tags [\#${file}])
    endforeach()
  else()
    set(main speedo_test_main)
    speedo_ctest(${name} ${test})
  endif()
  target_link_libraries(${name} PRIVATE speedo_warnings ${main} ${ARG_LINK} fmt::fmt)
  if(ARG_ASKS_LITTLE)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
    speedo_precompile(speedo_test_headers_unoptimised ${name})
  else()
    speedo_precompile(speedo_test_headers ${name})
  endif()
  list(REMOVE_ITEM ARG_LABEL sanitize)
  foreach(seed ${ARG_SEEDS})
    speedo_ctest(${name}_seed_${seed} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COMMAND ${name})
    set_tests_properties(${name}_seed_${seed} PROPERTIES ENVIRONMENT SPEEDO_TEST_SEED=${seed})
  endforeach()
endfunction()
