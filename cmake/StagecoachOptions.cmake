# Compiler settings that hold for every target.
#
# -ffp-contract=off and no -march: the same source gives the same bits on every x86-64 machine,
# except where a kernel picks an instruction set at run time (that choice is in a job's fingerprint).
# nvcc hands options to the host compiler only when told to.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>
                    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
                    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
                    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler -Wall,-Wextra,-ffp-contract=off>")
# So that a compiler cache sees which precompiled header a file uses.
add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
# It warns of a struct of one file alone that holds types of the same file, where that file is included in another.
if(STAGECOACH_UNITY)
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
endif()
# gcc looks for memory to reuse after every few megabytes, which is a tenth of its time. Without that it takes up to
# 2 GB for the largest files, as tools/build expects.
add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:--param=ggc-min-heapsize=1000000>)
add_compile_definitions(STAGECOACH_VERSION="${PROJECT_VERSION}")

if(STAGECOACH_SANITIZE)
  add_compile_options(-fsanitize=${STAGECOACH_SANITIZE} -fno-sanitize-recover=all -O1 -g1)
  # These are asked at every use of a pointer and take a third of the compiler's time. AddressSanitizer finds null
  # pointers by itself, x86-64 reads what is not aligned, and hardly anything here is cast from a base.
  add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
  add_link_options(-fsanitize=${STAGECOACH_SANITIZE})
  add_compile_definitions(STAGECOACH_SANITIZED=1 _GLIBCXX_ASSERTIONS)
  # libFuzzer looks for inputs that reach new code. Libraries with this option count what an input reaches; those of the
  # distribution, and those that compute, do not.
  if(STAGECOACH_FUZZ)
    set(STAGECOACH_COUNTED -fsanitize=fuzzer-no-link)
    add_compile_definitions(STAGECOACH_LIBFUZZER=1)
  endif()
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>)
  add_compile_definitions(_FORTIFY_SOURCE=2)
  add_link_options(-Wl,-z,relro,-z,now)
endif()

find_program(STAGECOACH_MOLD mold)
if(STAGECOACH_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

find_program(STAGECOACH_CCACHE ccache)
if(STAGECOACH_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STAGECOACH_CCACHE})
endif()

execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE STAGECOACH_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT STAGECOACH_REVISION)
  set(STAGECOACH_REVISION unknown)
endif()
