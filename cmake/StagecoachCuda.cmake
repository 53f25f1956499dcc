# The CUDA back end is built where the toolkit is: AUTO looks for it and goes on without, ON insists, OFF
# does not look. Sets STAGECOACH_HAVE_CUDA.
#
# Found: nvcc (PATH, CUDACXX, CUDA_HOME, /usr/local/cuda), the runtime, cuBLASLt, and the headers for
# cuDNN's attention, convolutions and pools where they are (STAGECOACH_HAVE_CUDNN_FRONTEND). Machine code for Ampere (also
# serves Ada) and Hopper, and PTX, which the driver compiles for what comes after.
#
# No -use_fast_math. -fmad stays on: a product and a sum may be one rounding, so bits are those of this
# build on one kind of card, the same run to run and for every number of stages, and not a CPU's.
set(STAGECOACH_CUDA AUTO CACHE STRING "Build the CUDA back end: AUTO, ON or OFF")
set_property(CACHE STAGECOACH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(STAGECOACH_HAVE_CUDA FALSE)
set(STAGECOACH_HAVE_CUDNN_FRONTEND FALSE)

# Tells once and leaves the file of the caller (a macro), or ends where CUDA was asked for.
macro(stagecoach_without_cuda reason)
  if(STAGECOACH_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: ${reason}; building without --device=cuda")
  else()
    message(FATAL_ERROR "CUDA: ${reason}. -DSTAGECOACH_CUDA=OFF builds without it.")
  endif()
  return()
endmacro()

if(STAGECOACH_CUDA STREQUAL "OFF")
  return()
endif()

find_program(STAGECOACH_NVCC NAMES nvcc
             HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin
             DOC "CUDA compiler")
if(NOT STAGECOACH_NVCC)
  stagecoach_without_cuda("no nvcc on PATH, in CUDA_HOME or in /usr/local/cuda")
endif()
set(CMAKE_CUDA_COMPILER ${STAGECOACH_NVCC} CACHE FILEPATH "CUDA compiler")
# Set before the language: CMake would try what its own version takes for the oldest card.
set(CMAKE_CUDA_ARCHITECTURES "80;90a-real" CACHE STRING "Cards to compile for")
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE)
  stagecoach_without_cuda("${STAGECOACH_NVCC} does not work with ${CMAKE_CXX_COMPILER}")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.4)
  stagecoach_without_cuda("${STAGECOACH_NVCC} is ${CMAKE_CUDA_COMPILER_VERSION}, 12.4 is needed")
endif()
find_package(CUDAToolkit QUIET)
if(NOT TARGET CUDA::cudart_static OR NOT TARGET CUDA::cublasLt)
  stagecoach_without_cuda("nvcc ${CMAKE_CUDA_COMPILER_VERSION} is here, cudart or cuBLASLt is not")
endif()

# Attention and convolutions through cuDNN need two sets of headers, and no library to link: cuDNN is loaded while a
# program runs (stage/backends/cuda/cudnn). cuDNN's own headers come with it; those of cudnn-frontend
# from PyPI by tools/cudnn_frontend, or from -DCUDNN_FRONTEND=folder (with include/ in it).
find_path(STAGECOACH_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_HOME
          PATH_SUFFIXES include)
# Looked for again where they are gone: they lie in a build folder.
if(NOT EXISTS "${STAGECOACH_CUDNN_FRONTEND_INCLUDE}/cudnn_frontend.h")
  unset(STAGECOACH_CUDNN_FRONTEND_INCLUDE CACHE)
endif()
find_path(STAGECOACH_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
          HINTS ${CUDNN_FRONTEND} ENV CUDNN_FRONTEND
                ${CMAKE_SOURCE_DIR}/build/cudnn-frontend PATH_SUFFIXES include)
set(by_cudnn "by own kernels")
if(NOT STAGECOACH_CUDNN_INCLUDE)
  string(APPEND by_cudnn ", as cudnn.h was not found")
elseif(NOT STAGECOACH_CUDNN_FRONTEND_INCLUDE)
  string(APPEND by_cudnn ", as cudnn_frontend.h was not found (tools/cudnn_frontend gets it)")
else()
  file(STRINGS ${STAGECOACH_CUDNN_FRONTEND_INCLUDE}/cudnn_frontend_version.h numbers
       REGEX "define CUDNN_FRONTEND_(MAJOR|MINOR|PATCH)_VERSION")
  string(REGEX REPLACE ".*MAJOR_VERSION ([0-9]+).*MINOR_VERSION ([0-9]+).*PATCH_VERSION ([0-9]+).*"
         "\\1.\\2.\\3" frontend_version "${numbers}")
  # What it was written and tried with; older ones know fewer of cuDNN's errors.
  if(frontend_version VERSION_LESS 1.32)
    string(APPEND by_cudnn ", as cudnn-frontend is ${frontend_version}, 1.32 is needed")
  else()
    set(STAGECOACH_HAVE_CUDNN_FRONTEND TRUE)
    set(by_cudnn "through cuDNN by cudnn-frontend ${frontend_version} where it is at run time")
  endif()
endif()

if(STAGECOACH_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${STAGECOACH_CCACHE})
endif()
set(STAGECOACH_HAVE_CUDA TRUE)
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}; bfloat16 "
               "attention, convolutions and pools ${by_cudnn}")
