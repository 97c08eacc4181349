# What every library and program of the product is compiled and linked with. tests/install/hardening.sh
# reads it back from what was built.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)

# Without this CMake leaves it to the compiler whether a program is position-independent.
check_pie_supported(OUTPUT_VARIABLE reason LANGUAGES CXX)
if(NOT CMAKE_CXX_LINK_PIE_SUPPORTED)
  message(STATUS "Programs are not position-independent: ${reason}")
endif()
check_cxx_compiler_flag(-fcf-protection=full SPEEDO_HAS_CF_PROTECTION)
check_cxx_compiler_flag(-fstack-clash-protection SPEEDO_HAS_STACK_CLASH_PROTECTION)

set(host -fstack-protector-strong)
if(SPEEDO_HAS_STACK_CLASH_PROTECTION)
  list(APPEND host -fstack-clash-protection)
endif()
if(SPEEDO_HAS_CF_PROTECTION)
  list(APPEND host -fcf-protection=full)
endif()

# Programs that listen to a network check their buffers, their containers' indices, returns and jumps.
# Fortified functions need an optimiser. nvcc's own front end reads the headers before the compiler
# does, and not every version of it knows what level 3 and the assertions ask for.
set(SPEEDO_HARDENING
  "$<$<COMPILE_LANGUAGE:C,CXX>:${host};-D_GLIBCXX_ASSERTIONS>"
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fstack-protector-strong>
  $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=$<IF:$<COMPILE_LANGUAGE:CUDA>,2,3>>)

# The same bytes from every folder (tests/install/reproducible.sh). The last that fits counts.
set(SPEEDO_REPRODUCIBLE
  $<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${PROJECT_BINARY_DIR}/=build/>)

# Addresses of functions are looked up when a program starts, and cannot be changed after that.
add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)

# speedo_harden(TARGET)
function(speedo_harden target)
  target_compile_options(${target} PRIVATE ${SPEEDO_HARDENING} ${SPEEDO_REPRODUCIBLE})
endfunction()
