# CUDA, where it is: src/gpu's kernels (.cu) are compiled by nvcc then, else as C++ for the host, and
# there is no GPU to compute on. SPEEDO_HAS_CUDA says which.
set(SPEEDO_CUDA AUTO CACHE STRING "Computing on GPUs: AUTO (where nvcc is), ON or OFF")
set_property(CACHE SPEEDO_CUDA PROPERTY STRINGS AUTO ON OFF)
set(SPEEDO_HAS_CUDA FALSE)
set(absent "SPEEDO_CUDA is OFF")
if(SPEEDO_SANITIZE)
  # Kernels that run on the host are what sanitizers see.
  set(absent "built with sanitizers")
elseif(SPEEDO_CUDA)
  find_program(SPEEDO_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
  if(SPEEDO_NVCC)
    set(CMAKE_CUDA_COMPILER ${SPEEDO_NVCC})
    # Code for 8.0 runs on 8.6 and 8.9 as well, and newer devices compile 9.0's when they load it.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
    endif()
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
      set(absent "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is older than 12.0")
    else()
      set(SPEEDO_HAS_CUDA TRUE)
    endif()
  else()
    set(absent "no nvcc on the PATH or in /usr/local/cuda/bin")
  endif()
endif()
if(SPEEDO_HAS_CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake before 3.26 does not know that nvcc has it.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  # The program starts where there is neither CUDA nor a driver.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  message(STATUS "GPUs: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, ${CMAKE_CUDA_ARCHITECTURES}")
else()
  if(SPEEDO_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SPEEDO_CUDA is ON: ${absent}")
  endif()
  message(STATUS "GPUs: none (${absent})")
endif()

# The headers of the libraries that compute products and convolutions. They are loaded when the first
# GPU backend is made; their doubles are tried wherever the headers are.
set(SPEEDO_HAS_CUDA_LIBRARIES FALSE)
if(SPEEDO_CUDA)
  set(hints ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} /usr/local/cuda/include)
  find_path(SPEEDO_CUBLASLT_INCLUDE cublasLt.h HINTS ${hints})
  find_path(SPEEDO_CUDNN_INCLUDE cudnn.h HINTS ${hints})
  if(SPEEDO_CUBLASLT_INCLUDE AND SPEEDO_CUDNN_INCLUDE)
    set(SPEEDO_HAS_CUDA_LIBRARIES TRUE)
  elseif(SPEEDO_HAS_CUDA)
    message(STATUS "GPUs: no cublasLt.h or no cudnn.h, so that nothing can be computed there")
  endif()
endif()
add_library(speedo_cuda_library_headers INTERFACE)
if(SPEEDO_HAS_CUDA_LIBRARIES)
  target_include_directories(speedo_cuda_library_headers SYSTEM INTERFACE
    ${SPEEDO_CUBLASLT_INCLUDE} ${SPEEDO_CUDNN_INCLUDE})
endif()

# speedo_kernels(TARGET): its sources .cu are kernels. Products and sums are rounded apart, as the
# host does it, so that what is tried there is what a device computes; loops over memory do not wait
# for arithmetic.
function(speedo_kernels target)
  if(SPEEDO_HAS_CUDA)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--fmad=false>)
    target_include_directories(${target} SYSTEM PRIVATE
      ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
    target_compile_definitions(${target} PRIVATE SPEEDO_HAS_CUDA)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CXX)
  # GCC would take the file for something that the linker knows.
  set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES
    COMPILE_OPTIONS "-x;c++")
endfunction()
