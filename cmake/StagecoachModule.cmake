# stagecoach_module(NAME [SEQUENTIAL] [VALUES] [NO_ASAN] [RPC] [ROWS] [FOLDERS ...] [DEPS ...] [TEST_DEPS ...]
#                   [NO_TSAN x_test.cc ...] [RELEASE_ONLY x_test.cc ...]): the library of the current folder.
#
# FOLDERS: sub-folders whose files belong to it too. tools/tidy.py refuses includes in a circle.
#
# RPC: most of its files include gRPC's headers (StagecoachPrecompiled.cmake).
# ROWS: its tests are hundreds of short rows, run by two processes and not by one each.
#
# Tests under sanitizers take five times as long as others, and their builds half of all compiling. They are for code
# that handles memory by hand or hands it from thread to thread:
# SEQUENTIAL: neither it nor its tests start a thread, so they have no tests under ThreadSanitizer.
# VALUES: it works on containers and strings of the standard library only, so it has no tests under sanitizers. Whole
# jobs, simulated clusters and fuzz targets run it under AddressSanitizer. The release build checks its containers.
# NO_ASAN: it has no tests under AddressSanitizer, as other tests run it there. ThreadSanitizer, if it has the tests,
# reports memory that is used after its end too.
# NO_TSAN: files of tests that have nothing for ThreadSanitizer to find.
# RELEASE_ONLY: files of tests as VALUES has, or that compare numbers of code that other tests run under sanitizers.
#
# Every x.cc here belongs to library stagecoach_NAME, every x_test.cc to the program NAME_tests;
# x_main.cc and x_fuzz.cc are left to their own targets. New files need no CMake change.
function(stagecoach_module name)
  cmake_parse_arguments(arg "SEQUENTIAL;VALUES;NO_ASAN;RPC;ROWS" ""
                        "FOLDERS;DEPS;TEST_DEPS;TEST_LABELS;NO_TSAN;RELEASE_ONLY" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder ${arg_FOLDERS})
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_main|_fuzz)\\.cc$")
  set(library stagecoach_${name})
  if(sources)
    add_library(${library} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${library} INTERFACE)
    set(scope INTERFACE)
  endif()
  # Code that computes little is compiled with less: -O1 takes 40 % off the time for -O3 and, sanitized, -O0 40 % off
  # the time for -O1.
  set(computes_little FALSE)
  if(arg_RPC OR name MATCHES "^(services_|coordinator|checkpoint|devices|network|operations)")
    set(computes_little TRUE)
  endif()
  set(idle FALSE)
  if(STAGECOACH_SANITIZE AND (computes_little OR name MATCHES "^(data|link|stage|plan)"))
    set(idle TRUE)
  endif()
  set(options)
  if(idle)
    list(APPEND options -O0)
  elseif(computes_little AND CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND options -O1)
  endif()
  if(idle OR name MATCHES "^(base|pictures)$")
    list(APPEND options ${STAGECOACH_COUNTED})
  endif()
  # An index behind the end of a vector ends the program with a message, where the access is compiled here.
  if((computes_little OR arg_VALUES) AND CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND options -D_GLIBCXX_ASSERTIONS)
  endif()
  if(sources)
    target_compile_options(${library} PRIVATE ${options})
  endif()
  target_include_directories(${library} ${scope} ${CMAKE_SOURCE_DIR})
  target_link_libraries(${library} ${scope} ${arg_DEPS})
  set(headers core)
  set(unit_headers unit)
  if(arg_RPC)
    set(headers rpc)
    set(unit_headers rpc_unit)
  endif()
  if(sources)
    stagecoach_precompiled(${library} ${headers})
    # What files include takes longer than what they say, gRPC's headers above all.
    set(most 16)
    if(arg_RPC)
      set(most 25)
    endif()
    stagecoach_unity(${library} ${STAGECOACH_UNITY} ${most})
    stagecoach_without_unity(${sources})
  endif()
  if((arg_SEQUENTIAL AND STAGECOACH_SANITIZE MATCHES thread)
     OR (arg_NO_ASAN AND STAGECOACH_SANITIZE MATCHES address)
     OR (arg_VALUES AND STAGECOACH_SANITIZE))
    set(tests)
  endif()
  set(left_out)
  if(STAGECOACH_SANITIZE)
    list(APPEND left_out ${arg_RELEASE_ONLY})
  endif()
  if(STAGECOACH_SANITIZE MATCHES thread)
    list(APPEND left_out ${arg_NO_TSAN})
  endif()
  foreach(test ${left_out})
    list(REMOVE_ITEM tests ${CMAKE_CURRENT_SOURCE_DIR}/${test})
  endforeach()
  if(tests)
    add_executable(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE ${library} ${arg_TEST_DEPS} GTest::gmock
                                                GTest::gtest_main)
    stagecoach_test_program(${name}_tests ${unit_headers})
    target_compile_definitions(${name}_tests
                               PRIVATE STAGECOACH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    # Thousands of processes start for longer than they test, sanitized ones above all. Of a large sanitized program two
    # run, as it would outlast all others and leave a core idle.
    list(LENGTH tests files)
    if(arg_ROWS OR (STAGECOACH_SANITIZE AND files GREATER_EQUAL 12))
      set(cost ${files})  # the longest first: the last one leaves the other cores idle
      if(arg_ROWS)
        set(cost 500)
      endif()
      foreach(half 0 1)
        add_test(NAME ${name}_tests_${half} COMMAND ${name}_tests --gtest_brief=1)
        set_tests_properties(${name}_tests_${half} PROPERTIES
                             ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${half}"
                             TIMEOUT 600 COST ${cost} LABELS "unit;${name}")
      endforeach()
    elseif(STAGECOACH_SANITIZE)
      add_test(NAME ${name}_tests COMMAND ${name}_tests --gtest_brief=1)
      set_tests_properties(${name}_tests PROPERTIES TIMEOUT 600 COST ${files} LABELS "unit;${name}")
    else()
      gtest_discover_tests(${name}_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                           PROPERTIES TIMEOUT 300 LABELS "unit;${name}")
    endif()
  endif()
endfunction()

# stagecoach_test_program(TARGET SET): how a program of tests is compiled. SET: its precompiled headers.
#
# Tests are compiled more often than they compute: gcc's -Og halves the time to build them, and clang, which compiles
# sanitized tests, takes half as long with -O0 as with -O1. Under AddressSanitizer a third of the rest goes to the scopes
# of the temporaries that tests are full of: those are watched in what is tested, not in the tests. Sanitized tests have
# no line numbers, which take their time too: a report names the test, and the lines of what it tests.
function(stagecoach_test_program target set)
  set(level -Og)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND level -D_GLIBCXX_ASSERTIONS)
  endif()
  if(STAGECOACH_SANITIZE)
    set(level -O0 -g0)
  endif()
  if(STAGECOACH_SANITIZE MATCHES "address")
    list(APPEND level -fno-sanitize-address-use-after-scope)
  endif()
  target_compile_options(${target} PRIVATE ${level})
  stagecoach_precompiled(${target} ${set})
  # Half of what is left is googletest's templates, made anew in every file.
  stagecoach_unity(${target} ${STAGECOACH_UNITY_TESTS} 20)
endfunction()

# stagecoach_unity(TARGET ON|OFF MOST): compiles the target's files in batches of one size, of MOST files or fewer.
function(stagecoach_unity target on most)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources files)
  math(EXPR batches "(${files} + ${most} - 1) / ${most}")
  math(EXPR size "(${files} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${on} UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# stagecoach_without_unity(SOURCES ...): Highway compiles these files once for each instruction set, by
# including them again under their own names.
function(stagecoach_without_unity)
  foreach(source ${ARGN})
    file(STRINGS ${source} found LIMIT_COUNT 1 REGEX "hwy/foreach_target.h")
    if(found)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# stagecoach_kernels(TARGET FOLDER): adds a back end's kernel files. Each is compiled alone, as they
# name functions alike.
function(stagecoach_kernels target folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/kernels/*.cc)
  target_sources(${target} PRIVATE ${sources})
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# stagecoach_program(NAME MAIN_FILE DEPS ...): a program of the services.
#
# MAIN_FILE is compiled as the files of a library are: with the same precompiled header.
function(stagecoach_program name main)
  add_library(${name}-main OBJECT ${main})
  target_link_libraries(${name}-main PRIVATE ${ARGN})
  if(STAGECOACH_SANITIZE)
    target_compile_options(${name}-main PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name}-main PRIVATE -O1)
  endif()
  stagecoach_precompiled(${name}-main rpc)
  add_executable(${name})
  target_link_libraries(${name} PRIVATE ${name}-main ${ARGN})
endfunction()
